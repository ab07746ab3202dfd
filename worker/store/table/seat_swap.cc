#include "worker/store/table/seat_swap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/device/swap_rows.h"

namespace parasol {
namespace {

// Elements of the buffer that a row's entry in the list takes.
constexpr size_t kEntry = sizeof(SwappedRow) / sizeof(float);

// How many rows in host memory are requested ahead. They lie anywhere.
constexpr size_t kRowsAhead = 16;

// Requests all of a row: a processor does not guess its later lines in time.
template <int kWrites>
void Prefetch(const float* row, size_t floats) {
  constexpr size_t kFloatsOfALine = 64 / sizeof(float);
  for (size_t i = 0; i < floats; i += kFloatsOfALine) {
    __builtin_prefetch(row + i, kWrites);
  }
}

}  // namespace

absl::Status SeatSwap::Reserve(size_t floats) {
  const size_t least = kEntry + floats;
  if (on_device_.size() >= least) return absl::OkStatus();
  RETURN_IF_ERROR(Finish());
  if (returned_ == nullptr) {
    ASSIGN_OR_RETURN(returned_, device_.NewEvent());
  }
  size_t size = std::max(buffer_bytes_ / sizeof(float), least);
  absl::StatusOr<Array<float>> on_device = device_.NewArray<float>(size);
  while (absl::IsResourceExhausted(on_device.status()) && size > least) {
    size = std::max(size / 2, least);
    on_device = device_.NewArray<float>(size);
  }
  RETURN_IF_ERROR(on_device.status());
  ASSIGN_OR_RETURN(Array<float> host, device_.NewHostArray<float>(size));
  on_device_ = *std::move(on_device);
  host_ = std::move(host);
  return absl::OkStatus();
}

absl::Status SeatSwap::Send() {
  absl::Span<const Move> rest = added_;
  while (!rest.empty()) {
    const size_t count = CountFitting(rest);
    CHECK_GT(count, 0) << "a row of " << rest.front().floats << " float32";
    RETURN_IF_ERROR(SendRound(rest.first(count)));
    rest.remove_prefix(count);
  }
  added_.clear();
  return absl::OkStatus();
}

size_t SeatSwap::CountFitting(absl::Span<const Move> moves) const {
  size_t count = 0;
  for (size_t used = 0; count < moves.size(); ++count) {
    used += kEntry + moves[count].floats;
    if (used > host_.size()) break;
  }
  return count;
}

// The buffers are free again when the last round's rows have come back.
absl::Status SeatSwap::SendRound(absl::Span<const Move> moves) {
  RETURN_IF_ERROR(Finish());
  const size_t list = moves.size() * kEntry;
  const size_t elements = Fill(moves);
  RETURN_IF_ERROR(device_.Copy(
      Device::Stream::kCopyIn,
      absl::MakeConstSpan(host_.data(), list + elements), on_device_.data()));
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCopyIn, Device::Stream::kCompute));
  RETURN_IF_ERROR(
      SwapRows(device_, reinterpret_cast<const SwappedRow*>(on_device_.data()),
               static_cast<int64_t>(moves.size()), on_device_.data() + list));
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCopyOut,
                   absl::MakeConstSpan(on_device_.data() + list, elements),
                   host_.data() + list));
  RETURN_IF_ERROR(device_.Record(Device::Stream::kCopyOut, *returned_));
  sent_.assign(moves.begin(), moves.end());
  return absl::OkStatus();
}

size_t SeatSwap::Fill(absl::Span<const Move> moves) {
  float* const rows = host_.data() + moves.size() * kEntry;
  size_t begin = 0;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (i + kRowsAhead < moves.size()) {
      const Move& ahead = moves[i + kRowsAhead];
      Prefetch<0>(ahead.in, ahead.floats);
    }
    const SwappedRow entry = {.row = moves[i].seat,
                              .begin = static_cast<uint32_t>(begin),
                              .floats = static_cast<uint32_t>(moves[i].floats)};
    std::memcpy(host_.data() + i * kEntry, &entry, sizeof(entry));
    std::copy_n(moves[i].in, moves[i].floats, rows + begin);
    begin += moves[i].floats;
  }
  return begin;
}

absl::Status SeatSwap::Finish() {
  if (sent_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(device_.Wait(*returned_));
  const float* row = host_.data() + sent_.size() * kEntry;
  for (size_t i = 0; i < sent_.size(); ++i) {
    if (i + kRowsAhead < sent_.size()) {
      const Move& ahead = sent_[i + kRowsAhead];
      if (ahead.out != nullptr) Prefetch<1>(ahead.out, ahead.floats);
    }
    if (sent_[i].out != nullptr) {
      std::copy_n(row, sent_[i].floats, sent_[i].out);
    }
    row += sent_[i].floats;
  }
  sent_.clear();
  return absl::OkStatus();
}

}  // namespace parasol
