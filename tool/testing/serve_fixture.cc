#include "tool/testing/serve_fixture.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"

namespace parasol {
namespace {

constexpr int kPollMillis = 60000;

}  // namespace

void ServeFixture::Start(const std::vector<std::string>& more) {
  SubprocessOptions options;
  options.argv = {absl::StrCat(getenv("TEST_SRCDIR"), "/",
                               getenv("TEST_WORKSPACE"), "/tool/parasol"),
                  "serve",
                  Path("ckpt"),
                  "--port=0",
                  "--grpc_port=0",
                  "--host=127.0.0.1",
                  "--name=ratings",
                  "--device=cpu",
                  "--poll_interval=20ms"};
  options.argv.insert(options.argv.end(), more.begin(), more.end());
  options.standard_error = OutputTo::Pipe();
  log_.clear();
  ASSERT_OK_AND_ASSIGN(server_, Subprocess::Start(options));
  AwaitLog("model ratings: ");
  port_ = NumberBehind("HTTP on 127.0.0.1:");
  grpc_port_ = NumberBehind("gRPC on 127.0.0.1:");
}

void ServeFixture::AwaitLog(const std::string& words) {
  while (!absl::StrContains(log_, words)) {
    pollfd ready = {
        .fd = server_->error_pipe(), .events = POLLIN, .revents = 0};
    char bytes[4096];
    ssize_t n = 0;
    if (poll(&ready, 1, kPollMillis) == 1) {
      n = read(server_->error_pipe(), bytes, sizeof(bytes));
    }
    ASSERT_GT(n, 0) << "no \"" << words << "\" in " << log_;
    log_.append(bytes, n);
  }
  // The whole line.
  while (!absl::StrContains(log_.substr(log_.find(words)), '\n')) {
    char byte;
    ASSERT_EQ(read(server_->error_pipe(), &byte, 1), 1);
    log_ += byte;
  }
}

int ServeFixture::Terminate() {
  server_->Terminate();
  const auto end = server_->Wait(absl::Seconds(60));
  EXPECT_OK(end);
  return end.ok() ? end->code() : -1;
}

std::string ServeFixture::RowsOf(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&rows, i == 0 ? "" : ", ", "{\"user\": ", i % 17,
                    ", \"item\": \"", i % 5, "\"}");
  }
  return absl::StrCat("{\"instances\": [", rows, "]}");
}

std::string ServeFixture::RowsOfPatterns(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&rows, i == 0 ? "" : ", ", "{\"c2\": \"b", i % 4,
                    "\", \"x1\": ", i % 5, ", \"x2\": ", i % 7,
                    ", \"xy\": ", RatingOf(i), ", \"c1\": \"a", i % 3, "\"}");
  }
  return absl::StrCat("{\"instances\": [", rows, "]}");
}

int64_t ServeFixture::VersionOf(const HttpAnswer& answer) {
  const std::string header = "x-parasol-model-version: ";
  const size_t at = answer.header.find(header);
  return at == std::string::npos
             ? -1
             : std::atoll(answer.header.c_str() + at + header.size());
}

int ServeFixture::NumberBehind(const std::string& words) const {
  return std::atoi(log_.c_str() + log_.find(words) + words.size());
}

}  // namespace parasol
