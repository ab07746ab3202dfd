#ifndef PARASOL_SERVING_HTTP_MESSAGE_H_
#define PARASOL_SERVING_HTTP_MESSAGE_H_

#include <string>
#include <utility>
#include <vector>

namespace parasol {

struct HttpRequest {
  std::string method = {};
  std::string path = {};  // decoded, without the query
  std::string body = {};
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
};

}  // namespace parasol

#endif  // PARASOL_SERVING_HTTP_MESSAGE_H_
