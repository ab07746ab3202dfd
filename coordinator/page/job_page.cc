#include "coordinator/page/job_page.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/shown_text.h"
#include "cluster/progress/status_json.h"
#include "coordinator/page/job_page_text.h"
#include "coordinator/steps/epoch_losses.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using PageJson = nlohmann::ordered_json;

// The last points by which the rate of steps is known.
constexpr size_t kRatePoints = 15;
constexpr size_t kMaxNoteBytes = 1000;

PageJson NumberOrNull(double value) {
  return std::isfinite(value) ? PageJson(value) : PageJson(nullptr);
}

PageJson EvaluationsJson(const std::vector<Evaluation>& evaluations) {
  PageJson json = PageJson::array();
  for (const Evaluation& evaluation : evaluations) {
    PageJson metrics = PageJson::object();
    for (const auto& [name, value] : evaluation.metrics) {
      metrics[name] = NumberOrNull(value);
    }
    json.push_back({{"step", evaluation.global_step},
                    {"loss", NumberOrNull(evaluation.loss)},
                    {"metrics", std::move(metrics)}});
  }
  return json;
}

// The mean losses of epochs, or of their parts. The oldest end of a full list
// is no point: its sums include ends before it, which are forgotten.
PageJson EpochsJson(const wire::JobStatus& status) {
  PageJson json = PageJson::array();
  const bool is_full =
      static_cast<size_t>(status.epoch_end_size()) >= EpochLosses::kMaxEnds;
  double loss_before = 0;
  double examples_before = 0;
  for (const wire::EpochEnd& end : status.epoch_end()) {
    if (!end.is_complete()) break;
    const double examples =
        static_cast<double>(end.loss_examples()) - examples_before;
    const double loss = end.loss_sum() - loss_before;
    examples_before = static_cast<double>(end.loss_examples());
    loss_before = end.loss_sum();
    const bool is_oldest = &end == &status.epoch_end(0);
    if (examples <= 0 || (is_full && is_oldest)) continue;
    json.push_back(
        {{"step", end.step()}, {"loss", NumberOrNull(loss / examples)}});
  }
  return json;
}

}  // namespace

void JobPage::Show(wire::JobStatus status) {
  auto shown = std::make_shared<const wire::JobStatus>(std::move(status));
  ShowCurve(*shown);
  absl::MutexLock lock(&mu_);
  shown_.status.swap(shown);
  shown_.at = clock_.Now();
}

void JobPage::ShowCurve(const wire::JobStatus& status) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  std::vector<Point>& curve = shown_.curve;
  if (status.phase() != wire::TRAINING ||
      (!curve.empty() && now - curve.back().time < shown_.interval)) {
    return;
  }
  curve.push_back({.time = now,
                   .step = status.global_step(),
                   .loss = status.has_loss() ? status.loss() : NAN,
                   .examples_per_second = status.examples_per_second()});
  if (curve.size() <= kMaxPoints) return;
  // Every second point stays.
  for (size_t i = 1; 2 * i < curve.size(); ++i) curve[i] = curve[2 * i];
  curve.resize((curve.size() + 1) / 2);
  shown_.interval *= 2;
}

void JobPage::Evaluated(const std::vector<Evaluation>& evaluations) {
  const size_t count = std::min(evaluations.size(), kMaxEvaluations);
  std::vector<Evaluation> newest(evaluations.end() - count, evaluations.end());
  absl::MutexLock lock(&mu_);
  shown_.evaluations = std::move(newest);
}

void JobPage::Note(absl::string_view line, bool is_warning) {
  const absl::Time now = clock_.Now();
  std::string text = OneLine(line.substr(0, kMaxNoteBytes));
  absl::MutexLock lock(&mu_);
  shown_.notes.push_back({now, std::move(text), is_warning});
  if (shown_.notes.size() > kMaxNotes) shown_.notes.pop_front();
}

std::string JobPage::Json() const {
  const absl::Time now = clock_.Now();
  Shown shown;
  {
    absl::MutexLock lock(&mu_);
    shown = shown_;
  }

  PageJson json = {
      {"unix_seconds", absl::ToDoubleSeconds(now - absl::UnixEpoch())}};
  json["notes"] = PageJson::array();
  for (const Line& note : shown.notes) {
    json["notes"].push_back(
        {{"unix_seconds", absl::ToDoubleSeconds(note.time - absl::UnixEpoch())},
         {"text", note.text},
         {"is_warning", note.is_warning}});
  }
  json["age_seconds"] = nullptr;
  json["job"] = nullptr;
  if (shown.status != nullptr) {
    json["age_seconds"] = absl::ToDoubleSeconds(now - shown.at);
    json["job"] = StatusJson(*shown.status);
    json["epochs"] = EpochsJson(*shown.status);
  }
  json["curve"] = {{"step", PageJson::array()},
                   {"loss", PageJson::array()},
                   {"examples_per_second", PageJson::array()}};
  for (const Point& point : shown.curve) {
    json["curve"]["step"].push_back(point.step);
    json["curve"]["loss"].push_back(NumberOrNull(point.loss));
    json["curve"]["examples_per_second"].push_back(
        NumberOrNull(point.examples_per_second));
  }
  json["evaluations"] = EvaluationsJson(shown.evaluations);
  json["steps_per_second"] = nullptr;
  if (shown.curve.size() >= 2) {
    const size_t first =
        shown.curve.size() - std::min(shown.curve.size(), kRatePoints);
    const Point& from = shown.curve[first];
    const Point& to = shown.curve.back();
    json["steps_per_second"] = static_cast<double>(to.step - from.step) /
                               absl::ToDoubleSeconds(to.time - from.time);
  }
  return json.dump(-1, ' ', false, PageJson::error_handler_t::replace);
}

PageServer::Page JobPage::At(absl::string_view path) const {
  if (path == "/") {
    return {.content_type = "text/html; charset=utf-8", .body = kJobPageHtml};
  }
  if (path == "/page.js") {
    return {.content_type = "text/javascript; charset=utf-8",
            .body = kJobPageScript};
  }
  if (path == "/page.css") {
    return {.content_type = "text/css; charset=utf-8", .body = kJobPageStyle};
  }
  if (path == "/status.json") {
    return {.content_type = "application/json", .body = Json()};
  }
  return {.status = 404, .body = "not found: see / and /metrics\n"};
}

}  // namespace parasol
