#include "ml/input/topic/topic_slice.h"

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr size_t kNumberDigits = 12;
constexpr int64_t kMaxNumber = 999'999'999'999;
constexpr int64_t kMaxOffset = int64_t{1} << 62;

// Reads digits alone, no more than an offset has.
std::optional<int64_t> NumberIn(absl::string_view text) {
  constexpr size_t kMaxDigits = 19;
  int64_t number = 0;
  if (text.empty() || text.size() > kMaxDigits ||
      !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &number) || number > kMaxOffset) {
    return std::nullopt;
  }
  return number;
}

// Reads "1:80-90" or "1:80".
std::optional<OffsetRange> RangeIn(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const std::vector<absl::string_view> ends = absl::StrSplit(parts[1], '-');
  if (ends.size() > 2) return std::nullopt;
  const auto partition = NumberIn(parts[0]);
  const auto begin = NumberIn(ends.front());
  const auto end = NumberIn(ends.back());
  constexpr int64_t kMaxPartition = (int64_t{1} << 31) - 1;
  if (!partition || !begin || !end || *partition > kMaxPartition ||
      *end < *begin || (ends.size() == 2 && *end == *begin)) {
    return std::nullopt;
  }
  return OffsetRange{static_cast<int32_t>(*partition), *begin, *end};
}

// What a partition has that no slice has.
struct NewOffsets {
  OffsetRange range;
  int64_t share = 0;  // of the next slice

  int64_t offsets() const { return range.end - range.begin; }
};

// Gives each partition its share of `total` offsets: as many of each, as far as
// it has them.
void Share(int64_t total, std::vector<NewOffsets>& parts) {
  std::vector<NewOffsets*> by_size;
  for (NewOffsets& part : parts) by_size.push_back(&part);
  std::sort(by_size.begin(), by_size.end(),
            [](const NewOffsets* a, const NewOffsets* b) {
              return a->offsets() < b->offsets();
            });
  for (size_t i = 0; i < by_size.size(); ++i) {
    const auto others = static_cast<int64_t>(by_size.size() - i);
    const int64_t share = (total + others - 1) / others;
    by_size[i]->share = std::min(share, by_size[i]->offsets());
    total -= by_size[i]->share;
  }
}

}  // namespace

int64_t TopicSlice::offsets() const {
  int64_t sum = 0;
  for (const OffsetRange& range : ranges) sum += range.end - range.begin;
  return sum;
}

std::string TopicSlice::Name() const {
  std::string name = absl::StrFormat("%s/%0*d@", topic, kNumberDigits, number);
  for (const OffsetRange& range : ranges) {
    absl::StrAppend(&name, name.back() == '@' ? "" : ",", range.partition, ":",
                    range.begin);
    if (range.end > range.begin) absl::StrAppend(&name, "-", range.end);
  }
  return name;
}

absl::StatusOr<TopicSlice> ParseSlice(absl::string_view name,
                                      absl::string_view topic) {
  const auto fault = [shown = ShownText(name), topic](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " is no slice of the topic ", topic, ": ", what));
  };
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, topic) || !absl::ConsumePrefix(&rest, "/")) {
    return fault("it does not begin with its name");
  }
  const size_t at = rest.find('@');
  TopicSlice slice;
  slice.topic = std::string(topic);
  const auto number = NumberIn(rest.substr(0, at));
  if (at != kNumberDigits || !number) return fault("it has no number");
  slice.number = *number;
  for (const absl::string_view text :
       absl::StrSplit(rest.substr(at + 1), ',')) {
    const std::optional<OffsetRange> range = RangeIn(text);
    if (!range) return fault("a range is no partition:begin-end");
    if (!slice.ranges.empty() &&
        slice.ranges.back().partition >= range->partition) {
      return fault("its partitions do not ascend");
    }
    slice.ranges.push_back(*range);
    if (slice.ranges.size() > kMaxPartitions ||
        range->end - range->begin > kMaxSliceOffsets ||
        slice.offsets() > kMaxSliceOffsets) {
      return fault("it has too many partitions or offsets");
    }
  }
  return slice;
}

SliceCut NextSlice(const std::string& topic,
                   const std::optional<TopicSlice>& last,
                   const std::vector<PartitionOffsets>& now, int64_t batch_size,
                   bool takes_rest) {
  batch_size = std::clamp<int64_t>(batch_size, 1, kMaxSliceOffsets);
  SliceCut cut;
  std::map<int32_t, NewOffsets> parts;
  std::map<int32_t, int64_t> ends;
  if (last) {
    // What a broker does not name now is still where it was.
    for (const OffsetRange& range : last->ranges) {
      ends[range.partition] = range.end;
      parts[range.partition].range = {range.partition, range.end, range.end};
    }
  }
  for (const PartitionOffsets& offsets : now) {
    const auto end = ends.find(offsets.partition);
    const int64_t begin = end == ends.end() ? offsets.low : end->second;
    NewOffsets& part = parts[offsets.partition];
    part.range = {offsets.partition, begin, begin};
    if (offsets.high < begin) {
      cut.trouble = absl::StrCat(
          topic, " partition ", offsets.partition, " ends at offset ",
          offsets.high, ", but this run has taken it up to ", begin,
          ": if its records are lost, or the topic was made anew, begin a run "
          "in another checkpoint directory");
      continue;
    }
    part.range.begin = std::max(begin, offsets.low);
    part.range.end = std::max(part.range.begin, offsets.high);
    if (part.range.begin == begin) continue;
    cut.deleted += part.range.begin - begin;
    cut.deleted_why = absl::StrCat(
        topic, " partition ", offsets.partition, ": the offsets ", begin,
        " to ", part.range.begin - 1,
        " were deleted before they were taken; keep records for longer "
        "(retention.ms)");
  }
  std::vector<NewOffsets> found;
  for (const auto& [partition, part] : parts) found.push_back(part);
  int64_t there = 0;
  for (const NewOffsets& part : found) there += part.offsets();
  const int64_t most =
      std::max(batch_size, kSliceOffsets / batch_size * batch_size);
  int64_t total = std::min(there, most);
  if (!takes_rest || there >= batch_size) total -= total % batch_size;
  cut.left = there - total;
  if (total == 0) {
    cut.deleted = 0;
    cut.deleted_why.clear();
    return cut;
  }
  Share(total, found);
  TopicSlice& slice = cut.slice.emplace();
  slice.topic = topic;
  slice.number = last ? std::min(last->number + 1, kMaxNumber) : 0;
  for (NewOffsets& part : found) {
    part.range.end = part.range.begin + part.share;
    slice.ranges.push_back(part.range);
  }
  return cut;
}

}  // namespace parasol
