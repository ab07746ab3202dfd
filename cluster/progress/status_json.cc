#include "cluster/progress/status_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "cluster/progress/task_notes.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

bool Names(const google::protobuf::RepeatedPtrField<std::string>& tasks,
           const std::string& task) {
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

double InSeconds(const google::protobuf::Duration& duration) {
  return duration.seconds() + duration.nanos() / 1e9;
}

Json Number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json PaceJson(const wire::WorkerPace& pace) {
  const wire::StepTimes& step = pace.step();
  return {{"steps_per_second", pace.steps_per_second()},
          {"step_seconds",
           {{"input", InSeconds(step.input())},
            {"pull", InSeconds(step.pull())},
            {"compute", InSeconds(step.compute())},
            {"push", InSeconds(step.push())},
            {"wait", InSeconds(step.wait())},
            {"stood_still", InSeconds(step.stood_still())}}},
          {"batch_seconds", InSeconds(pace.batch())},
          {"slowness", pace.slowness()}};
}

Json LoadJson(const wire::PsLoad& load) {
  Json json = {{"operations_per_second", load.operations_per_second()},
               {"busy_threads", load.busy_threads()},
               {"push_bytes_per_second", load.push_bytes_per_second()},
               {"pull_bytes_per_second", load.pull_bytes_per_second()}};
  if (load.has_stuck()) json["stuck_seconds"] = InSeconds(load.stuck());
  if (load.has_writing()) json["writing_seconds"] = InSeconds(load.writing());
  if (load.has_loading()) json["loading_seconds"] = InSeconds(load.loading());
  if (load.has_hot_row()) {
    json["hot_row"] = {{"table", load.hot_row().table()},
                       {"row", std::to_string(load.hot_row().row())},
                       {"share", load.hot_row().share()}};
  }
  if (!load.late_worker().empty()) {
    json["late_worker"] = load.late_worker();
    json["late_share"] = load.late_share();
  }
  return json;
}

Json WaitsJson(const wire::TaskStatus& task) {
  Json waits = Json::array();
  for (const wire::PsWait& wait : task.ps_wait()) {
    waits.push_back(
        {{"ps", wait.ps()},
         {"share", wait.share()},
         {"seconds",
          wait.has_since() ? Json(InSeconds(wait.since())) : Json(nullptr)},
         {"trouble", wait.trouble()}});
  }
  return waits;
}

Json TaskJson(const wire::TaskStatus& task, const wire::JobStatus& status) {
  return {
      {"task", NameOfTask(task)},
      {"state", StateOf(task, status)},
      {"address", task.address()},
      {"metrics_address", task.metrics_address()},
      {"process", task.process()},
      {"version", task.version()},
      {"slow", task.slow()},
      {"doubled", task.doubled()},
      {"acted_by", task.acted_by()},
      {"seconds_since_heard",
       task.has_silence() ? Json(InSeconds(task.silence())) : Json(nullptr)},
      {"pace", task.has_pace() ? PaceJson(task.pace()) : Json(nullptr)},
      {"waits", WaitsJson(task)},
      {"load", task.has_ps_load() ? LoadJson(task.ps_load()) : Json(nullptr)}};
}

Json FollowedJson(const wire::FollowedData& data) {
  return {{"pattern", data.pattern()},
          {"files", data.files()},
          {"newest", data.newest()},
          {"newest_age_seconds", data.has_newest_age()
                                     ? Json(InSeconds(data.newest_age()))
                                     : Json(nullptr)},
          {"waiting_records", data.waiting_records()},
          {"waiting_files", data.waiting_files()},
          {"waited_seconds",
           data.has_waited() ? Json(InSeconds(data.waited())) : Json(nullptr)},
          {"skipped_files", data.skipped_files()},
          {"skipped", data.skipped()},
          {"trouble", data.trouble()}};
}

std::vector<std::string> Strings(
    const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

std::string StateOf(const wire::TaskStatus& task,
                    const wire::JobStatus& status) {
  const std::string name = NameOfTask(task);
  if (Names(status.missing_task(), name)) return "missing";
  if (!task.alive()) return "not there";
  if (!task.slow().empty()) return "slow";
  if (Names(status.awaited_task(), name)) return "awaited";
  return "alive";
}

Json StatusJson(const wire::JobStatus& status) {
  Json json = {
      {"phase", wire::JobPhase_Name(status.phase())},
      {"global_step", status.global_step()},
      {"end_step", status.end_step()},
      {"steps_per_epoch", status.steps_per_epoch()},
      {"run_id", status.run_id()},
      {"examples_per_second", Number(status.examples_per_second())},
      {"learning_rate", Number(status.learning_rate())},
      {"loss", status.has_loss() ? Number(status.loss()) : Json(nullptr)},
      {"checkpoint", status.checkpoint()},
      {"missing_tasks", Strings(status.missing_task())},
      {"awaited_tasks", Strings(status.awaited_task())},
      {"waited_seconds",
       status.has_waited() ? Json(InSeconds(status.waited())) : Json(nullptr)},
      {"trained_seconds", status.has_trained()
                              ? Json(InSeconds(status.trained()))
                              : Json(nullptr)},
      {"trouble", status.trouble()},
      {"failure", status.failure()},
      {"placement_skew", Number(status.placement_skew())},
      {"staleness",
       status.has_staleness() ? Json(status.staleness()) : Json(nullptr)},
      {"evaluated_step", status.has_evaluated_step()
                             ? Json(status.evaluated_step())
                             : Json(nullptr)},
      {"due_evaluations", status.due_evaluations()},
      {"awaited_evaluation", status.has_awaited_evaluation()
                                 ? Json(status.awaited_evaluation())
                                 : Json(nullptr)}};
  json["findings"] = Json::array();
  for (const wire::Finding& finding : status.finding()) {
    json["findings"].push_back(
        {{"kind",
          absl::AsciiStrToLower(wire::Finding::Kind_Name(finding.kind()))},
         {"task", finding.task()},
         {"text", finding.text()}});
  }
  json["warnings"] = Strings(status.warning());
  json["followed"] =
      status.has_followed() ? FollowedJson(status.followed()) : Json(nullptr);
  json["absent_tasks"] = Json::array();
  for (const wire::AbsentTask& task : status.absent_task()) {
    json["absent_tasks"].push_back({{"task", task.task()},
                                    {"seconds", InSeconds(task.absent())},
                                    {"was_there", task.was_there()}});
  }
  json["tasks"] = Json::array();
  for (const wire::TaskStatus& task : status.task()) {
    json["tasks"].push_back(TaskJson(task, status));
  }
  return json;
}

}  // namespace parasol
