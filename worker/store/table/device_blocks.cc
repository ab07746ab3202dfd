#include "worker/store/table/device_blocks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Bytes of blocks that are fetched at once.
constexpr size_t kFetchBytes = 4 << 20;

int ShiftFor(size_t block_bytes, size_t row_bytes) {
  const size_t rows = std::max<size_t>(
      1, std::min(block_bytes, DeviceBlocks::kBlockBytes) / row_bytes);
  return std::bit_width(rows) - 1;
}

}  // namespace

DeviceBlocks::DeviceBlocks(const Options& options, RowMemory& memory,
                           Device& device)
    : options_(options),
      shift_(ShiftFor(options.block_bytes, options.floats * sizeof(float))),
      limit_(memory),
      device_(device) {}

DeviceBlocks::~DeviceBlocks() { limit_.Return(allocated_bytes()); }

absl::Status DeviceBlocks::Reserve(size_t rows) {
  const size_t blocks = (rows + rows_per_block() - 1) / rows_per_block();
  while (blocks_.size() < blocks) {
    RETURN_IF_ERROR(AddBlocks(blocks - blocks_.size()));
  }
  return absl::OkStatus();
}

// As many as there are, since memory in small pieces costs time and space; but
// no more than are needed if the device has no memory for them.
absl::Status DeviceBlocks::AddBlocks(size_t needed) {
  const size_t allowed = limit_.free_bytes() / BytesPerBlock();
  if (allowed == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker.max_device_table_bytes is ", limit_.limit_bytes(),
                     " for all tables"));
  }
  const size_t most =
      std::min(allowed, std::max<size_t>(1, kGrowthBytes / BytesPerBlock()));
  const size_t few = std::min(needed, most);
  const size_t many = std::clamp(blocks_.size(), few, most);
  absl::StatusOr<Array<float>> memory =
      device_.NewArray<float>(many * ElementsPerBlock());
  size_t added = many;
  if (absl::IsResourceExhausted(memory.status()) && few < many) {
    memory = device_.NewArray<float>(few * ElementsPerBlock());
    added = few;
  }
  RETURN_IF_ERROR(memory.status());
  RETURN_IF_ERROR(ReservePointers(blocks_.size() + added));
  const size_t first = blocks_.size();
  // Waits for a copy of what stood there before Truncate().
  if (first < copied_) {
    RETURN_IF_ERROR(device_.Synchronize());
  }
  copied_ = first + added;
  for (size_t i = 0; i < added; ++i) {
    blocks_.push_back(memory->data() + i * ElementsPerBlock());
    blocks_to_copy_.data()[first + i] = blocks_.back();
  }
  limit_.Take(added * BytesPerBlock());
  memory_.push_back(*std::move(memory));
  return device_.Copy(
      Device::Stream::kCopyIn,
      absl::Span<float* const>(blocks_to_copy_.data() + first, added),
      blocks_on_device_.data() + first);
}

absl::Status DeviceBlocks::ReservePointers(size_t blocks) {
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

RowBlocks DeviceBlocks::blocks() const {
  return {.blocks = blocks_on_device_.data(),
          .shift = shift_,
          .floats = static_cast<int32_t>(floats())};
}

size_t DeviceBlocks::CapacityWithout(size_t bytes) const {
  size_t blocks = blocks_.size();
  size_t given_back = 0;
  for (size_t i = memory_.size(); i > 0 && given_back < bytes; --i) {
    given_back += memory_[i - 1].size() * sizeof(float);
    blocks -= memory_[i - 1].size() / ElementsPerBlock();
  }
  return blocks << shift_;
}

void DeviceBlocks::Truncate(size_t capacity) {
  while (this->capacity() > capacity) {
    limit_.Return(memory_.back().size() * sizeof(float));
    blocks_.resize(blocks_.size() - memory_.back().size() / ElementsPerBlock());
    memory_.pop_back();
  }
}

absl::Status DeviceBlocks::Fetch(
    size_t begin, size_t end,
    absl::FunctionRef<absl::Status(size_t, absl::Span<const float>)> visit) {
  if (begin >= end) return absl::OkStatus();
  CHECK_EQ(begin % rows_per_block(), 0);
  RETURN_IF_ERROR(device_.Synchronize());
  const size_t end_block = (end + rows_per_block() - 1) >> shift_;
  const size_t elements = floats() << shift_;
  const size_t at_once =
      std::min(end_block - (begin >> shift_),
               std::max<size_t>(1, kFetchBytes / (elements * sizeof(float))));
  // Not kept: it is pinned memory.
  ASSIGN_OR_RETURN(const Array<float> host,
                   device_.NewHostArray<float>(at_once * elements));
  for (size_t first = begin >> shift_; first < end_block; first += at_once) {
    const size_t last = std::min(first + at_once, end_block);
    for (size_t block = first; block < last; ++block) {
      RETURN_IF_ERROR(
          device_.Copy(Device::Stream::kCompute,
                       absl::Span<const float>(blocks_[block], elements),
                       host.data() + (block - first) * elements));
    }
    RETURN_IF_ERROR(device_.Synchronize());
    for (size_t block = first; block < last; ++block) {
      const size_t row = block << shift_;
      const size_t rows = std::min(rows_per_block(), end - row);
      RETURN_IF_ERROR(visit(
          row, absl::MakeConstSpan(host.data() + (block - first) * elements,
                                   rows * floats())));
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol
