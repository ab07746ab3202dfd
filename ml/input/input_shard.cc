#include "ml/input/input_shard.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// The upper 53 bits: a double in [0, 1).
double UnitInterval(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Returns true if every shard has an example of its own files.
bool FilesSuffice(const std::vector<int64_t>& file_starts, int num_shards) {
  std::vector<bool> has_examples(num_shards);
  for (size_t file = 0; file + 1 < file_starts.size(); ++file) {
    if (file_starts[file] < file_starts[file + 1]) {
      has_examples[file % num_shards] = true;
    }
  }
  return std::count(has_examples.begin(), has_examples.end(), true) ==
         num_shards;
}

}  // namespace

uint64_t RandomBits(uint64_t seed, uint64_t number) {
  constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  const auto finalize = [](uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  };
  return finalize(finalize(seed + kGoldenRatio) + number * kGoldenRatio);
}

Selection::Selection(const std::vector<int64_t>& file_starts,
                     const job::Split* split)
    : is_everything_(split == nullptr) {
  if (is_everything_) {
    file_starts_ = file_starts;
    return;
  }
  const double to = split->has_to() ? split->to() : 1;
  for (size_t file = 0; file + 1 < file_starts.size(); ++file) {
    file_starts_.push_back(static_cast<int64_t>(examples_.size()));
    for (int64_t i = file_starts[file]; i < file_starts[file + 1]; ++i) {
      const double random = UnitInterval(RandomBits(split->seed(), i));
      if (random >= split->from() && random < to) examples_.push_back(i);
    }
  }
  file_starts_.push_back(static_cast<int64_t>(examples_.size()));
}

absl::StatusOr<InputShard> InputShard::Create(const Selection& selection,
                                              job::Dataset::AutoShard policy,
                                              const Options& options) {
  const int shards = options.num_shards;
  if (options.shard < 0 || options.shard >= shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input shard ", options.shard, " is not in 0 to ", shards - 1));
  }
  const std::vector<int64_t>& starts = selection.file_starts();
  const int files = static_cast<int>(starts.size()) - 1;
  if (policy == job::Dataset::AUTO) {
    policy = shards > 1 && FilesSuffice(starts, shards) ? job::Dataset::FILE
                                                        : job::Dataset::DATA;
  }
  if (policy == job::Dataset::FILE && files < shards) {
    return absl::InvalidArgumentError(
        absl::StrCat("auto_shard is FILE, but the data set has ", files,
                     " files for ", shards, " workers; use DATA"));
  }
  InputShard shard;
  shard.order_ = {.total = selection.size(),
                  .shuffle_buffer = options.shuffle_buffer,
                  .seed = options.seed};
  if (policy == job::Dataset::DATA) {
    shard.order_.shard = options.shard;
    shard.order_.num_shards = shards;
  } else if (options.shard > 0) {
    shard.order_.seed = RandomBits(options.seed, options.shard);
  }
  if (policy == job::Dataset::FILE) {
    shard.order_.total = 0;
    for (int file = options.shard; file < files; file += shards) {
      shard.AddFile(starts[file], starts[file + 1]);
    }
  }
  if (shard.size() > 0) return shard;
  if (selection.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data set has no examples in ", files,
                     files == 1 ? " file: it has" : " files: they have",
                     " none, or the split leaves all of them out"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input shard ", options.shard, " of ", shards,
                   " would be empty: the data set has ", selection.size(),
                   " examples in ", files, " files; use fewer workers"));
}

int64_t InputShard::size() const {
  const int64_t behind = order_.total - order_.shard;
  return behind <= 0 ? 0 : (behind - 1) / order_.num_shards + 1;
}

int64_t InputShard::PositionOf(int64_t number) const {
  if (ranges_.empty()) return number;
  const auto behind = std::upper_bound(
      ranges_.begin(), ranges_.end(), number,
      [](int64_t n, const Range& range) { return n < range.first_number; });
  const Range& range = behind[-1];
  return range.first_position + (number - range.first_number);
}

void InputShard::AddFile(int64_t begin, int64_t end) {
  if (begin == end) return;
  ranges_.push_back({.first_number = order_.total, .first_position = begin});
  order_.total += end - begin;
}

}  // namespace parasol
