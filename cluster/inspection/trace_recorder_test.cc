#include "cluster/inspection/trace_recorder.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000'000);

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

TraceRecorder::Span SpanAt(const char* name, int begin, int end) {
  return {.name = name, .track = "t", .begin = At(begin), .end = At(end)};
}

std::vector<std::string> NamesOf(const TraceRecorder::Recorded& recorded) {
  std::vector<std::string> names;
  for (const auto& span : recorded.spans) names.emplace_back(span.name);
  return names;
}

TEST(TraceRecorderTest, KeepsNothingUnlessATraceIsWanted) {
  TraceRecorder recorder;
  EXPECT_FALSE(recorder.is_on());
  recorder.Add(SpanAt("before", 0, 1));
  recorder.Start({.begin = At(0), .end = At(10), .steps = 5});
  EXPECT_TRUE(recorder.is_on());
  recorder.Add(SpanAt("during", 0, 1));
  EXPECT_THAT(NamesOf(recorder.Take()), ElementsAre("during"));
  EXPECT_FALSE(recorder.is_on());
  recorder.Add(SpanAt("after", 0, 1));
  EXPECT_THAT(recorder.Take().spans, IsEmpty());
}

TEST(TraceRecorderTest, SpansOutsideOfItsTimeAreLeftOut) {
  TraceRecorder recorder;
  recorder.Start({.begin = At(10), .end = At(20), .steps = 5});
  recorder.Add(SpanAt("before", 1, 9));
  recorder.Add(SpanAt("over the beginning", 9, 11));
  recorder.Add(SpanAt("over the end", 19, 21));
  recorder.Add(SpanAt("behind", 21, 22));
  EXPECT_FALSE(recorder.IsOver(At(19)));
  EXPECT_TRUE(recorder.IsOver(At(20)));
  EXPECT_THAT(NamesOf(recorder.Take()),
              ElementsAre("over the beginning", "over the end"));
}

TEST(TraceRecorderTest, EndsAfterSoManyWholeSteps) {
  TraceRecorder recorder;
  recorder.Start({.begin = At(10), .end = At(1000), .steps = 2});
  recorder.EndStep(At(9));   // not of the trace
  recorder.EndStep(At(11));  // the first whole one begins
  recorder.EndStep(At(12));
  EXPECT_TRUE(recorder.is_on());
  EXPECT_FALSE(recorder.IsOver(At(12)));
  recorder.EndStep(At(13));
  EXPECT_FALSE(recorder.is_on());
  EXPECT_TRUE(recorder.IsOver(At(13)));
}

TEST(TraceRecorderTest, CountsWhatItHasNoRoomFor) {
  TraceRecorder recorder;
  recorder.Start({.begin = At(0), .end = At(10), .steps = 1});
  for (size_t i = 0; i < TraceRecorder::kMaxSpans + 7; ++i) {
    recorder.Add(SpanAt("span", 0, 1));
  }
  const TraceRecorder::Recorded recorded = recorder.Take();
  EXPECT_THAT(recorded.spans, SizeIs(TraceRecorder::kMaxSpans));
  EXPECT_EQ(recorded.dropped, 7);
  EXPECT_EQ(recorder.Take().dropped, 0);
}

TEST(TraceRecorderTest, ThreadsRecordWhileTracesBeginAndEnd) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 2000;
  TraceRecorder recorder;
  recorder.Start({.begin = At(0), .end = At(10), .steps = 1});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&recorder] {
        for (int n = 0; n < kSpans; ++n) {
          TraceRecorder::Span span = SpanAt("span", 0, 1);
          span.track = TrackOfThread();
          recorder.Add(std::move(span));
        }
      });
    }
  }
  const TraceRecorder::Recorded recorded = recorder.Take();
  EXPECT_THAT(recorded.spans, SizeIs(kThreads * kSpans));
  std::set<std::string> tracks;
  for (const auto& span : recorded.spans) tracks.insert(span.track);
  EXPECT_THAT(tracks, SizeIs(kThreads));
}

}  // namespace
}  // namespace parasol
