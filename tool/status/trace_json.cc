#include "tool/status/trace_json.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deploy/local/run_result.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

// A span may end later than the one that it is in by this, as times are cut to
// microseconds.
constexpr int64_t kCutMicros = 2;
// Lanes of one track. Each operation that a stream has under way has one; a
// span that none has room for is left out, and counted.
constexpr size_t kMaxLanes = 1024;

// A span on the chief's clock.
struct PlacedSpan {
  const wire::TraceSpan* span = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};
using Track = std::vector<PlacedSpan>;

// Spans of which each is in the one before, or behind it.
struct TraceLane {
  std::vector<int64_t> open_ends = {};
  Track spans = {};

  // Takes the span if it fits.
  bool Take(PlacedSpan placed) {
    while (!open_ends.empty() && open_ends.back() <= placed.begin) {
      open_ends.pop_back();
    }
    if (!open_ends.empty()) {
      if (placed.end > open_ends.back() + kCutMicros) return false;
      placed.end = std::min(placed.end, open_ends.back());
    }
    open_ends.push_back(placed.end);
    spans.push_back(placed);
    return true;
  }
};

// The lanes of a track, so that none has spans that overlap.
std::vector<TraceLane> LanesOf(Track track, TraceSummary& summary) {
  std::sort(track.begin(), track.end(),
            [](const PlacedSpan& a, const PlacedSpan& b) {
              return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
            });
  std::vector<TraceLane> lanes;
  for (const PlacedSpan& placed : track) {
    const auto it =
        std::find_if(lanes.begin(), lanes.end(),
                     [&](TraceLane& lane) { return lane.Take(placed); });
    if (it != lanes.end()) continue;
    if (lanes.size() < kMaxLanes) {
      lanes.emplace_back().Take(placed);
    } else {
      --summary.spans;
      ++summary.dropped;
    }
  }
  return lanes;
}

// The time that a trace shows.
struct Window {
  int64_t first = std::numeric_limits<int64_t>::min();
  int64_t last = std::numeric_limits<int64_t>::max();
};

// Others end later than the workers, of which they have to hear.
Window WorkersTime(const std::vector<wire::InspectedTask>& tasks) {
  Window window = {.first = std::numeric_limits<int64_t>::max(),
                   .last = std::numeric_limits<int64_t>::min()};
  for (const wire::InspectedTask& task : tasks) {
    if (!absl::StartsWith(task.task(), "worker/")) continue;
    for (const wire::InspectionPart& part : task.part()) {
      for (const wire::TraceSpan& span : part.span()) {
        const int64_t begin = span.begin_micros() + part.clock_offset_micros();
        window.first = std::min(window.first, begin);
        window.last = std::max(window.last, begin + span.duration_micros());
      }
    }
  }
  return window.first > window.last ? Window() : window;
}

std::map<std::string, Track> TracksOf(const wire::InspectedTask& task,
                                      const Window& window) {
  std::map<std::string, Track> tracks;
  for (const wire::InspectionPart& part : task.part()) {
    for (const wire::TraceSpan& span : part.span()) {
      const int64_t begin = span.begin_micros() + part.clock_offset_micros();
      // The chief leaves out numbers whose sum would be too large.
      const int64_t end = begin + span.duration_micros();
      if (end < window.first || begin > window.last) continue;
      tracks[span.track()].push_back({&span, begin, end});
    }
  }
  return tracks;
}

Json NameEvent(const char* what, int process, int thread,
               const std::string& name) {
  return {{"ph", "M"},
          {"pid", process},
          {"tid", thread},
          {"name", what},
          {"args", {{"name", name}}}};
}

Json SpanEvent(const PlacedSpan& placed, int process, int thread,
               int64_t first) {
  const wire::TraceSpan& span = *placed.span;
  Json event = {{"ph", "X"},
                {"pid", process},
                {"tid", thread},
                {"ts", placed.begin - first},
                {"dur", placed.end - placed.begin},
                {"name", span.name()}};
  if (span.has_step()) event["args"]["step"] = span.step();
  if (span.bytes() > 0) event["args"]["bytes"] = span.bytes();
  return event;
}

// Appends one event a line.
void Append(const Json& event, std::string& events) {
  absl::StrAppend(&events, events.empty() ? "" : ",\n",
                  event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void AppendTask(const std::string& name, std::map<std::string, Track> tracks,
                int process, int64_t first, TraceSummary& summary,
                std::string& events) {
  Append(NameEvent("process_name", process, 0, name), events);
  int thread = 0;
  for (auto& [track, spans] : tracks) {
    int number = 0;
    for (const TraceLane& lane : LanesOf(std::move(spans), summary)) {
      ++thread;
      Append(NameEvent("thread_name", process, thread,
                       ++number == 1 ? track
                                     : absl::StrCat(track, " (", number, ")")),
             events);
      for (const PlacedSpan& span : lane.spans) {
        Append(SpanEvent(span, process, thread, first), events);
      }
    }
  }
}

// Notes what is shown of one task.
void Summarize(const wire::InspectedTask& task, TraceSummary& summary) {
  for (const wire::InspectionPart& part : task.part()) {
    summary.dropped += part.dropped();
    // Half of each of two delays.
    summary.clock_error =
        std::max(summary.clock_error, part.clock_delay_micros() / 1e6);
  }
}

}  // namespace

std::string TraceJson(const std::vector<wire::InspectedTask>& tasks,
                      TraceSummary& summary) {
  std::vector<std::pair<std::string, std::map<std::string, Track>>> shown;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  const Window window = WorkersTime(tasks);
  for (const wire::InspectedTask& task : tasks) {
    Summarize(task, summary);
    std::map<std::string, Track> tracks = TracksOf(task, window);
    if (tracks.empty()) continue;
    for (const auto& [name, spans] : tracks) {
      for (const PlacedSpan& span : spans) {
        ++summary.spans;
        first = std::min(first, span.begin);
        last = std::max(last, span.end);
      }
    }
    summary.tasks.push_back(task.task());
    shown.emplace_back(task.task(), std::move(tracks));
  }
  if (last > first) summary.seconds = (last - first) / 1e6;
  std::string events;
  int process = 0;
  for (auto& [name, tracks] : shown) {
    AppendTask(name, std::move(tracks), ++process, first, summary, events);
  }
  return absl::StrCat("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n",
                      events, "\n]}\n");
}

std::string TraceLine(const TraceSummary& summary, const std::string& file,
                      const std::vector<std::string>& missing) {
  std::string line = absl::StrFormat(
      "%s: %s spans of %s over %.3g s", file, WithThousands(summary.spans),
      summary.tasks.empty() ? "no task" : absl::StrJoin(summary.tasks, ", "),
      summary.seconds);
  absl::StrAppendFormat(&line, "; clocks agree to %.2g ms",
                        summary.clock_error * 1e3);
  if (summary.dropped > 0) {
    absl::StrAppend(&line, "; ", WithThousands(summary.dropped),
                    " more spans were left out");
  }
  if (!missing.empty()) {
    absl::StrAppend(&line, "; missing: ", absl::StrJoin(missing, ", "));
  }
  return absl::StrCat(line, "\n");
}

}  // namespace parasol
