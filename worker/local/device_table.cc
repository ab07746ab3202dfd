#include "worker/local/device_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// As those of a RowTable's stripes: not all grow together.
constexpr double kMinIndexLoad = .5;
constexpr double kMaxIndexLoad = .75;

// How many index lines are requested ahead.
constexpr size_t kAhead = 16;

// Bytes of rows in a batch of Visit(), and of rows that are fetched at once.
constexpr size_t kBatchBytes = 16 << 10;
constexpr size_t kFetchBytes = 4 << 20;

// Rows' numbers are int32.
constexpr size_t kMaxRows = std::numeric_limits<int32_t>::max();

int ShiftFor(size_t row_bytes) {
  const size_t rows = std::max<size_t>(1, DeviceTable::kBlockBytes / row_bytes);
  return std::bit_width(rows) - 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceTable>> DeviceTable::Create(
    const Options& options, const Optimizer& optimizer, Device& device) {
  ASSIGN_OR_RETURN(RowInitializer initializer,
                   RowInitializer::Create(options.initializer, options.seed,
                                          options.name, options.width));
  std::unique_ptr<DeviceTable> table(
      new DeviceTable(options, std::move(initializer), optimizer, device));
  ASSIGN_OR_RETURN(table->copied_, device.NewEvent());
  return table;
}

DeviceTable::DeviceTable(const Options& options, RowInitializer initializer,
                         const Optimizer& optimizer, Device& device)
    : options_(options),
      initializer_(std::move(initializer)),
      optimizer_(optimizer),
      device_(device),
      floats_(options.width * (1 + optimizer.slot_names().size())),
      has_marks_(optimizer.other_rows() != Optimizer::OtherRows::kUntouched),
      shift_(ShiftFor(floats_ * sizeof(float))) {
  for (size_t s = 0; s < kRowStripes; ++s) {
    const double load =
        kMinIndexLoad + (kMaxIndexLoad - kMinIndexLoad) * s / kRowStripes;
    indexes_.push_back(std::make_unique<RowIndex>(arena_, load));
  }
}

absl::Status DeviceTable::Find(absl::Span<const uint64_t> ids,
                               absl::Span<int32_t> numbers) {
  CHECK_EQ(ids.size(), numbers.size());
  missing_.clear();
  missing_ids_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) {
      const uint64_t ahead = RowHash(ids[i + kAhead]);
      IndexOf(ahead).Prefetch(ahead);
    }
    const uint64_t hash = RowHash(ids[i]);
    const uint32_t number = IndexOf(hash).Find(hash);
    if (number == RowIndex::kNone) {
      missing_.push_back(i);
      missing_ids_.push_back(ids[i]);
    } else {
      numbers[i] = static_cast<int32_t>(number);
    }
  }
  if (missing_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(float* row, Stage(missing_.size()));
  for (const uint64_t id : missing_ids_) {
    Fill(id, row);
    row += floats_;
  }
  for (size_t i = 0; i < missing_.size(); ++i) {
    numbers[missing_[i]] = static_cast<int32_t>(ids_.size() + i);
  }
  return Append(missing_ids_);
}

void DeviceTable::Fill(uint64_t id, float* row) const {
  initializer_.Fill(id, row);
  const size_t width = options_.width;
  for (size_t slot = 0; (1 + slot) * width < floats_; ++slot) {
    std::fill_n(row + (1 + slot) * width, width,
                optimizer_.InitialSlotValue(slot));
  }
}

absl::Status DeviceTable::Insert(const RowBatch& batch) {
  if (batch.rows.size() != batch.ids.size() * floats_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", options_.name, ": ", batch.ids.size(), " rows of ", floats_,
        " float32 can't be in an array of ", batch.rows.size()));
  }
  RETURN_IF_ERROR(CheckAreNew(batch.ids));
  if (!batch.ids.empty()) {
    ASSIGN_OR_RETURN(float* const rows, Stage(batch.ids.size()));
    std::copy(batch.rows.begin(), batch.rows.end(), rows);
    RETURN_IF_ERROR(Append(batch.ids));
  }
  updates_ = std::max(updates_, batch.updates);
  return absl::OkStatus();
}

absl::Status DeviceTable::CheckAreNew(absl::Span<const uint64_t> ids) {
  const auto is_there = [this](uint64_t id) {
    return absl::AlreadyExistsError(
        absl::StrCat("table ", options_.name, ": row ", id));
  };
  for (const uint64_t id : ids) {
    const uint64_t hash = RowHash(id);
    if (IndexOf(hash).Find(hash) != RowIndex::kNone) return is_there(id);
  }
  // Those of a checkpoint ascend already.
  std::vector<uint64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  return twice == sorted.end() ? absl::OkStatus() : is_there(*twice);
}

// The rows that were staged last may still be on their way.
absl::StatusOr<float*> DeviceTable::Stage(size_t rows) {
  if (rows > kMaxRows - ids_.size()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        rows, " more rows than ", ids_.size(), " are more than ", kMaxRows));
  }
  RETURN_IF_ERROR(Reserve(ids_.size() + rows));
  RETURN_IF_ERROR(device_.Wait(*copied_));
  const size_t elements = rows * floats_;
  if (elements > staged_.size()) {
    ASSIGN_OR_RETURN(staged_, device_.NewHostArray<float>(
                                  std::max(elements, staged_.size() * 3 / 2)));
  }
  return staged_.data();
}

absl::Status DeviceTable::Append(absl::Span<const uint64_t> ids) {
  const size_t per_block = rows_per_block();
  for (size_t done = 0; done < ids.size();) {
    const size_t number = ids_.size() + done;
    const size_t in_block = number % per_block;
    const size_t count = std::min(ids.size() - done, per_block - in_block);
    RETURN_IF_ERROR(device_.Copy(
        Device::Stream::kCopyIn,
        absl::MakeConstSpan(staged_.data() + done * floats_, count * floats_),
        blocks_[number / per_block] + in_block * floats_));
    done += count;
  }
  RETURN_IF_ERROR(device_.Record(Device::Stream::kCopyIn, *copied_));
  for (const uint64_t id : ids) {
    const uint64_t hash = RowHash(id);
    IndexOf(hash).Insert(hash, static_cast<uint32_t>(ids_.size()));
    ids_.push_back(id);
  }
  return absl::OkStatus();
}

size_t DeviceTable::BlockElements() const {
  return (floats_ + has_marks_) << shift_;
}

absl::Status DeviceTable::Reserve(size_t rows) {
  const size_t blocks = (rows + rows_per_block() - 1) / rows_per_block();
  while (blocks_.size() < blocks) {
    RETURN_IF_ERROR(AddBlocks(blocks - blocks_.size()));
  }
  return absl::OkStatus();
}

// As many as there are, since memory in small pieces costs time and space; but
// no more than are needed if the device has no memory for them.
absl::Status DeviceTable::AddBlocks(size_t needed) {
  const size_t most =
      std::max<size_t>(1, kGrowthBytes / (BlockElements() * sizeof(float)));
  const size_t few = std::min(needed, most);
  const size_t many = std::clamp(blocks_.size(), few, most);
  absl::StatusOr<Array<float>> memory =
      device_.NewArray<float>(many * BlockElements());
  size_t added = many;
  if (absl::IsResourceExhausted(memory.status()) && few < many) {
    memory = device_.NewArray<float>(few * BlockElements());
    added = few;
  }
  RETURN_IF_ERROR(memory.status());
  RETURN_IF_ERROR(ReservePointers(blocks_.size() + added));
  const size_t first = blocks_.size();
  for (size_t i = 0; i < added; ++i) {
    blocks_.push_back(memory->data() + i * BlockElements());
    blocks_to_copy_.data()[first + i] = blocks_.back();
  }
  memory_.push_back(*std::move(memory));
  return device_.Copy(
      Device::Stream::kCopyIn,
      absl::Span<float* const>(blocks_to_copy_.data() + first, added),
      blocks_on_device_.data() + first);
}

absl::Status DeviceTable::ReservePointers(size_t blocks) {
  if (blocks <= blocks_on_device_.size()) return absl::OkStatus();
  const size_t size = std::max<size_t>(2 * blocks, 64);
  ASSIGN_OR_RETURN(Array<float*> on_device, device_.NewArray<float*>(size));
  ASSIGN_OR_RETURN(Array<float*> to_copy, device_.NewHostArray<float*>(size));
  std::copy(blocks_.begin(), blocks_.end(), to_copy.data());
  outgrown_.push_back(std::exchange(blocks_on_device_, std::move(on_device)));
  outgrown_.push_back(std::exchange(blocks_to_copy_, std::move(to_copy)));
  return device_.Copy(
      Device::Stream::kCopyIn,
      absl::Span<float* const>(blocks_to_copy_.data(), blocks_.size()),
      blocks_on_device_.data());
}

RowBlocks DeviceTable::blocks() const {
  return {.blocks = blocks_on_device_.data(),
          .shift = shift_,
          .floats = static_cast<int32_t>(floats_)};
}

absl::Status DeviceTable::Visit(RowVisit visit) {
  if (ids_.empty()) return visit({.updates = updates_});
  RETURN_IF_ERROR(device_.Synchronize());
  const size_t per_block = rows_per_block();
  const size_t block_floats = per_block * floats_;
  const size_t at_once =
      std::max<size_t>(1, kFetchBytes / (block_floats * sizeof(float)));
  // Not kept: it is pinned memory.
  ASSIGN_OR_RETURN(const Array<float> host,
                   device_.NewHostArray<float>(
                       std::min(at_once, blocks_.size()) * block_floats));
  for (size_t first = 0; first * per_block < ids_.size(); first += at_once) {
    const size_t end =
        std::min(first + at_once, (ids_.size() + per_block - 1) / per_block);
    for (size_t block = first; block < end; ++block) {
      RETURN_IF_ERROR(
          device_.Copy(Device::Stream::kCompute,
                       absl::Span<const float>(blocks_[block], block_floats),
                       host.data() + (block - first) * block_floats));
    }
    RETURN_IF_ERROR(device_.Synchronize());
    for (size_t block = first; block < end; ++block) {
      const size_t begin = block * per_block;
      RETURN_IF_ERROR(
          VisitBlock(host.data() + (block - first) * block_floats, begin,
                     std::min(per_block, ids_.size() - begin), visit));
    }
  }
  return absl::OkStatus();
}

// Rows `first` and those behind it lie at `rows`.
absl::Status DeviceTable::VisitBlock(const float* rows, size_t first,
                                     size_t count, RowVisit visit) {
  const size_t in_batch =
      std::max<size_t>(1, kBatchBytes / (floats_ * sizeof(float)));
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ids_[first + a] < ids_[first + b];
  });
  std::vector<uint64_t> ids;
  std::vector<float> values;
  for (size_t begin = 0; begin < count; begin += in_batch) {
    ids.clear();
    values.clear();
    for (size_t i = begin; i < std::min(begin + in_batch, count); ++i) {
      const float* const row = rows + order[i] * floats_;
      ids.push_back(ids_[first + order[i]]);
      values.insert(values.end(), row, row + floats_);
    }
    RETURN_IF_ERROR(visit({.updates = updates_, .ids = ids, .rows = values}));
  }
  return absl::OkStatus();
}

absl::Status DeviceTable::Read(int32_t number, absl::Span<float> out) {
  CHECK_EQ(out.size(), options_.width);
  if (fetched_.size() == 0) {
    ASSIGN_OR_RETURN(fetched_, device_.NewHostArray<float>(options_.width));
  }
  RETURN_IF_ERROR(device_.Synchronize());
  const size_t in_block = number % rows_per_block();
  const float* const row = blocks_[number >> shift_] + in_block * floats_;
  RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute,
                               absl::Span<const float>(row, options_.width),
                               fetched_.data()));
  RETURN_IF_ERROR(device_.Synchronize());
  std::copy_n(fetched_.data(), options_.width, out.data());
  return absl::OkStatus();
}

}  // namespace parasol
