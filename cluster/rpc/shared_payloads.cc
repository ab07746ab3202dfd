#include "cluster/rpc/shared_payloads.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);

size_t BlocksFor(uint64_t bytes) {
  return (bytes + SharedPayloads::kBlockBytes - 1) /
         SharedPayloads::kBlockBytes;
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shared payload: ", what));
}

}  // namespace

SharedPayloads::SharedPayloads(std::shared_ptr<SharedMemory> memory,
                               bool is_worker)
    : memory_(std::move(memory)),
      sent_(memory_->data() + (is_worker ? 0 : Direction::kBytes)),
      received_(memory_->data() + (is_worker ? Direction::kBytes : 0)) {
  static_assert(kBlocks * sizeof(uint32_t) <= Direction::kStateBytes);
}

absl::StatusOr<std::unique_ptr<SharedPayloads>> SharedPayloads::Create() {
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::Create(2 * Direction::kBytes));
  return std::unique_ptr<SharedPayloads>(
      new SharedPayloads(std::move(memory), /*is_worker=*/true));
}

absl::StatusOr<std::unique_ptr<SharedPayloads>> SharedPayloads::Open(
    absl::string_view offer) {
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::Open(offer, 2 * Direction::kBytes));
  return std::unique_ptr<SharedPayloads>(
      new SharedPayloads(std::move(memory), /*is_worker=*/false));
}

std::vector<uint32_t> SharedPayloads::FreeBlocks(size_t bytes) {
  const size_t count = BlocksFor(bytes);
  std::vector<uint32_t> blocks;
  if (count > kBlocks) return blocks;
  blocks.reserve(count);
  for (uint32_t block = 0; block < kBlocks && blocks.size() < count; ++block) {
    if (MayFill(block)) blocks.push_back(block);
  }
  if (blocks.size() < count) blocks.clear();
  return blocks;
}

bool SharedPayloads::MayFill(uint32_t block) {
  // Acquire: what the peer has read of it, it has read before.
  if (sent_.state(block).load(std::memory_order_acquire) != kFree) return false;
  if (!populated_[block]) {
    populated_[block] = memory_->Populate(
        static_cast<size_t>(sent_.block(block) - memory_->data()), kBlockBytes);
  }
  return populated_[block];
}

size_t SharedPayloads::Send(
    std::vector<PayloadRef>& payloads,
    google::protobuf::RepeatedPtrField<wire::SharedPayload>& shared) {
  size_t copied = 0;
  std::vector<PayloadRef> others;
  others.reserve(payloads.size());
  for (size_t i = 0; i < payloads.size(); ++i) {
    PayloadRef& payload = payloads[i];
    std::vector<uint32_t> blocks;
    if (payload.size >= kMinBytes) blocks = FreeBlocks(payload.size);
    if (blocks.empty()) {
      others.push_back(std::move(payload));
      continue;
    }
    wire::SharedPayload& added = *shared.Add();
    added.set_position(static_cast<uint32_t>(i));
    added.set_bytes(payload.size);
    copied += payload.size;
    const std::byte* from = static_cast<const std::byte*>(payload.data);
    size_t left = payload.size;
    for (const uint32_t block : blocks) {
      const size_t some = std::min(left, kBlockBytes);
      std::memcpy(sent_.block(block), from, some);
      sent_.state(block).store(kFilled, std::memory_order_release);
      added.add_block(block);
      from += some;
      left -= some;
    }
  }
  payloads = std::move(others);
  return copied;
}

absl::StatusOr<PayloadView> SharedPayloads::View(
    const wire::SharedPayload& shared, Hold& hold) const {
  const uint64_t bytes = shared.bytes();
  if (bytes == 0 || static_cast<uint64_t>(shared.block_size()) > kBlocks ||
      bytes > kBlocks * kBlockBytes ||
      BlocksFor(bytes) != static_cast<size_t>(shared.block_size())) {
    return Malformed(absl::StrCat(bytes, " bytes in ", shared.block_size(),
                                  " blocks of ", kBlockBytes));
  }
  PayloadView::Pieces pieces;
  size_t left = bytes;
  for (const uint32_t block : shared.block()) {
    if (block >= kBlocks) {
      return Malformed(absl::StrCat("block ", block, " of ", kBlocks));
    }
    // Acquire: what the peer has written, it has written before.
    uint32_t state = kFilled;
    if (!received_.state(block).compare_exchange_strong(
            state, kInUse, std::memory_order_acquire)) {
      return Malformed(absl::StrCat("block ", block, " is not filled"));
    }
    hold.states_.push_back(received_.state(block));
    const size_t some = std::min(left, kBlockBytes);
    const char* begin = reinterpret_cast<const char*>(received_.block(block));
    if (!pieces.empty() && pieces.back().end() == begin) {
      pieces.back() = {pieces.back().data(), pieces.back().size() + some};
    } else {
      pieces.emplace_back(begin, some);
    }
    left -= some;
  }
  hold.bytes_ += bytes;
  return PayloadView(std::move(pieces), /*may_change=*/true);
}

absl::StatusOr<SharedPayloads::Hold> SharedPayloads::Receive(
    const google::protobuf::RepeatedPtrField<wire::SharedPayload>& shared,
    std::vector<PayloadView>& payloads) {
  Hold hold;
  if (shared.empty()) return hold;
  const size_t count = payloads.size() + shared.size();
  hold.memory_ = memory_;
  std::vector<PayloadView> all;
  all.reserve(count);
  auto other = payloads.begin();
  for (const wire::SharedPayload& next : shared) {
    while (all.size() < next.position() && other != payloads.end()) {
      all.push_back(std::move(*other++));
    }
    if (all.size() != next.position()) {
      return Malformed(
          absl::StrCat("position ", next.position(), " of ", count));
    }
    ASSIGN_OR_RETURN(PayloadView view, View(next, hold));
    all.push_back(std::move(view));
  }
  std::move(other, payloads.end(), std::back_inserter(all));
  payloads = std::move(all);
  return hold;
}

SharedPayloads::Hold& SharedPayloads::Hold::operator=(Hold&& other) {
  std::swap(memory_, other.memory_);
  std::swap(states_, other.states_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void SharedPayloads::Hold::Free() {
  for (const std::atomic_ref<uint32_t> state : states_) {
    state.store(kFree, std::memory_order_release);
  }
}

}  // namespace parasol
