#include "serving/rest_api.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "serving/json_answer.h"
#include "serving/json_request.h"
#include "serving/request_columns.h"

namespace parasol {
namespace {

constexpr char kTextType[] = "text/plain; charset=utf-8";
constexpr char kPrometheusType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr absl::string_view kPrefix = "/v1/models/";
constexpr absl::string_view kVersions = "/versions/";
constexpr absl::string_view kPredict = ":predict";
constexpr absl::string_view kMetadata = "/metadata";

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpResponse WrongMethod(absl::string_view allowed) {
  HttpResponse response = {.status = 405};
  response.headers.emplace_back("Allow", std::string(allowed));
  response.body =
      ErrorJson(absl::StrCat("this path takes ", allowed, " alone"));
  return response;
}

void NameVersion(const ServedModel& model, HttpResponse& response) {
  response.headers.emplace_back(kVersionHeader, absl::StrCat(model.version()));
  if (model.written() == absl::InfinitePast()) return;
  response.headers.emplace_back(
      kWrittenHeader, absl::FormatTime(model.written(), absl::UTCTimeZone()));
}

absl::StatusOr<std::string> PredictionsOf(const Prediction& prediction,
                                          ServedModel& model,
                                          absl::string_view body) {
  const absl::Time deadline = prediction.Deadline();
  RequestColumns columns(model.form(), prediction.limits());
  ASSIGN_OR_RETURN(const JsonRequest request, ParseJsonRequest(body, columns));
  ASSIGN_OR_RETURN(const std::vector<SignatureOutput> outputs,
                   model.OutputsOf(request.signature_name));
  if (columns.examples() == 0 && request.is_rows) {
    return PredictionsJson({}, outputs, true);
  }
  ASSIGN_OR_RETURN(
      const std::vector<float> values,
      prediction.Predict(model, request.signature_name, columns, deadline));
  return PredictionsJson(values, outputs, request.is_rows);
}

}  // namespace

HttpResponse ErrorResponse(const absl::Status& error) {
  HttpResponse response = {.status = HttpStatusOf(error)};
  response.body = ErrorJson(error.message());
  return response;
}

std::optional<RestApi::Target> RestApi::TargetOf(absl::string_view path) {
  Target target;
  if (!absl::ConsumePrefix(&path, kPrefix)) return std::nullopt;
  for (const absl::string_view verb : {kPredict, kMetadata}) {
    if (absl::ConsumeSuffix(&path, verb)) {
      target.verb = std::string(verb);
      break;
    }
  }
  const size_t versions = path.rfind(kVersions);
  if (versions != absl::string_view::npos) {
    int64_t version = 0;
    if (!absl::SimpleAtoi(path.substr(versions + kVersions.size()), &version)) {
      return std::nullopt;
    }
    target.version = version;
    path = path.substr(0, versions);
  }
  if (path.empty() || absl::StrContains(path, '/') ||
      absl::StrContains(path, ':')) {
    return std::nullopt;
  }
  target.model = std::string(path);
  return target;
}

HttpResponse RestApi::Handle(const HttpRequest& request) const {
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (request.path == "/healthz") return is_get ? Health() : WrongMethod("GET");
  if (request.path == "/metrics") {
    if (!is_get) return WrongMethod("GET");
    return {.content_type = kPrometheusType, .body = metrics_.Text()};
  }
  const std::optional<Target> target = TargetOf(request.path);
  if (!target.has_value()) {
    return ErrorResponse(absl::NotFoundError(
        absl::StrCat("no such path; there are ", kPrefix, prediction_.name(),
                     ":predict, ", kPrefix, prediction_.name(),
                     "[/versions/V][/metadata], /healthz and "
                     "/metrics")));
  }
  if (target->verb == kPredict) {
    return request.method == "POST" ? Predict(*target, request)
                                    : WrongMethod("POST");
  }
  if (!is_get) return WrongMethod("GET");
  return target->verb == kMetadata ? Metadata(*target) : State(*target);
}

HttpResponse RestApi::Health() const {
  HttpResponse response = {.content_type = kTextType};
  const std::shared_ptr<ServedModel> model = prediction_.versions().Current();
  if (model == nullptr || is_leaving_) {
    response.status = 503;
    response.body =
        is_leaving_ ? "the server is leaving\n" : "no version is loaded yet\n";
    return response;
  }
  response.body = "ok\n";
  NameVersion(*model, response);
  return response;
}

HttpResponse RestApi::Predict(const Target& target,
                              const HttpRequest& request) const {
  const absl::Time begin = prediction_.Now();
  const absl::StatusOr<std::shared_ptr<ServedModel>> model =
      prediction_.Find(target.model, target.version);
  HttpResponse response;
  absl::Status status = model.status();
  if (status.ok()) {
    absl::StatusOr<std::string> body =
        PredictionsOf(prediction_, **model, request.body);
    status = body.status();
    if (status.ok()) response.body = *std::move(body);
  }
  if (!status.ok()) response = ErrorResponse(status);
  if (model.ok()) NameVersion(**model, response);
  prediction_.Count(begin, status);
  return response;
}

HttpResponse RestApi::Metadata(const Target& target) const {
  const absl::StatusOr<std::shared_ptr<ServedModel>> model =
      prediction_.Find(target.model, target.version);
  if (!model.ok()) return ErrorResponse(model.status());
  HttpResponse response;
  response.body = MetadataJson((*model)->Signature(prediction_.name()));
  NameVersion(**model, response);
  return response;
}

HttpResponse RestApi::State(const Target& target) const {
  const absl::StatusOr<std::vector<VersionState>> states =
      prediction_.States(target.model, target.version);
  if (!states.ok()) return ErrorResponse(states.status());
  HttpResponse response;
  response.body = StatusJson(*states);
  return response;
}

}  // namespace parasol
