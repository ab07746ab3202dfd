#include "tool/status/trace_json.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr int64_t kStart = 1'000'000'000'000'000;

wire::InspectedTask TaskWithSpans(const std::string& name, int64_t offset) {
  wire::InspectedTask task;
  task.set_task(name);
  task.add_part()->set_clock_offset_micros(offset);
  task.mutable_part(0)->set_clock_delay_micros(300);
  return task;
}

// A span that begins at `begin` on the chief's clock.
void AddSpan(wire::InspectedTask& task, const char* track, const char* name,
             int64_t begin, int64_t duration) {
  wire::TraceSpan& span = *task.mutable_part(0)->add_span();
  span.set_track(track);
  span.set_name(name);
  span.set_begin_micros(kStart + begin - task.part(0).clock_offset_micros());
  span.set_duration_micros(duration);
}

// The spans of a trace, "worker/0 training compute 5+10".
std::vector<std::string> SpansOf(const std::string& text) {
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::vector<std::string> spans;
  const Json trace = Json::parse(text);
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    const int thread = event["tid"];
    if (event["name"] == "process_name") {
      processes[process] = event["args"]["name"];
    } else if (event["name"] == "thread_name") {
      threads[{process, thread}] = event["args"]["name"];
    } else {
      spans.push_back(processes.at(process) + " " +
                      threads.at({process, thread}) + " " +
                      std::string(event["name"]) + " " + event["ts"].dump() +
                      "+" + event["dur"].dump());
    }
  }
  return spans;
}

TEST(TraceJsonTest, TasksAreProcessesOnOneClock) {
  wire::InspectedTask worker = TaskWithSpans("worker/0", -5'000'000);
  AddSpan(worker, "training", "compute", 100, 50);
  wire::InspectedTask ps = TaskWithSpans("ps/0", 7'000'000);
  AddSpan(ps, "thread 5", "push", 149, 4);
  TraceSummary summary;
  const std::string text = TraceJson({worker, ps}, summary);
  EXPECT_THAT(SpansOf(text), ElementsAre("worker/0 training compute 0+50",
                                         "ps/0 thread 5 push 49+4"));
  EXPECT_THAT(summary.tasks, ElementsAre("worker/0", "ps/0"));
  EXPECT_EQ(summary.spans, 2);
  EXPECT_DOUBLE_EQ(summary.seconds, 53e-6);
  EXPECT_DOUBLE_EQ(summary.clock_error, 300e-6);
}

TEST(TraceJsonTest, AllIsOfTheWorkersTime) {
  wire::InspectedTask worker = TaskWithSpans("worker/0", 0);
  AddSpan(worker, "training", "step", 100, 50);
  wire::InspectedTask ps = TaskWithSpans("ps/0", 0);
  AddSpan(ps, "thread 5", "push", 90, 5);
  AddSpan(ps, "thread 5", "push", 98, 5);
  AddSpan(ps, "thread 5", "push", 151, 5);
  TraceSummary summary;
  EXPECT_THAT(
      SpansOf(TraceJson({worker, ps}, summary)),
      ElementsAre("worker/0 training step 2+50", "ps/0 thread 5 push 0+5"));
  EXPECT_EQ(summary.spans, 2);
}

TEST(TraceJsonTest, SpansThatOverlapAreBesideEachOther) {
  wire::InspectedTask task = TaskWithSpans("worker/0", 0);
  AddSpan(task, "stream", "push", 0, 100);
  AddSpan(task, "stream", "pull", 50, 100);
  AddSpan(task, "stream", "push", 160, 10);
  // One has others, but for what was cut.
  AddSpan(task, "training", "step", 0, 99);
  AddSpan(task, "training", "input", 0, 40);
  AddSpan(task, "training", "push", 40, 60);
  TraceSummary summary;
  EXPECT_THAT(
      SpansOf(TraceJson({task}, summary)),
      UnorderedElementsAre(
          "worker/0 stream push 0+100", "worker/0 stream (2) pull 50+100",
          "worker/0 stream push 160+10", "worker/0 training step 0+99",
          "worker/0 training input 0+40", "worker/0 training push 40+59"));
}

TEST(TraceJsonTest, SpansBeyondTheLanesAreCounted) {
  wire::InspectedTask task = TaskWithSpans("worker/0", 0);
  for (int i = 0; i < 1500; ++i) {
    AddSpan(task, "stream", "push", 10 * i, 20'000);
  }
  TraceSummary summary;
  EXPECT_THAT(SpansOf(TraceJson({task}, summary)), SizeIs(1024));
  EXPECT_EQ(summary.spans, 1024);
  EXPECT_EQ(summary.dropped, 1500 - 1024);
}

TEST(TraceJsonTest, WhateverATaskSaysIsJson) {
  wire::InspectedTask task = TaskWithSpans("worker/0", 0);
  AddSpan(task, "a\"b\\\n", "\x01", 0, 1);
  task.mutable_part(0)->mutable_span(0)->set_step(-1);
  task.mutable_part(0)->mutable_span(0)->set_bytes(1 << 20);
  TraceSummary summary;
  const Json trace = Json::parse(TraceJson({task}, summary));
  const Json& span = trace["traceEvents"].back();
  EXPECT_EQ(span["args"]["step"], -1);
  EXPECT_EQ(span["args"]["bytes"], 1 << 20);
  EXPECT_THAT(Json::parse(TraceJson({}, summary))["traceEvents"], SizeIs(0));
}

TEST(TraceJsonTest, TheLineSaysWhatThereIsAndWhatIsMissing) {
  TraceSummary summary = {.tasks = {"worker/0", "ps/0"},
                          .spans = 12345,
                          .seconds = .5,
                          .clock_error = .0003};
  EXPECT_EQ(TraceLine(summary, "t.json", {}),
            "t.json: 12,345 spans of worker/0, ps/0 over 0.5 s; clocks agree "
            "to 0.3 ms\n");
  summary.dropped = 7;
  EXPECT_THAT(TraceLine(summary, "t.json", {"worker/1"}),
              HasSubstr("7 more spans were left out; missing: worker/1\n"));
}

}  // namespace
}  // namespace parasol
