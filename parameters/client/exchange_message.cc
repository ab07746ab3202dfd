#include "parameters/client/exchange_message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/rpc/message_memory.h"
#include "cluster/rpc/tensor_frame.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

using Kind = ShardOperation::Kind;

// Decoded at once: fits into the first cache.
constexpr size_t kBlockElements = 2048;

wire::Encoding OnWire(job::Encoding encoding) {
  switch (encoding) {
    case job::FLOAT32:
      return wire::FLOAT32;
    case job::FLOAT16:
      return wire::FLOAT16;
    case job::BFLOAT16:
      return wire::BFLOAT16;
  }
  return wire::FLOAT32;
}

template <typename Push>
void SetPush(const ShardOutbox::Entry& entry, Push& push) {
  push.set_sequence(entry.sequence);
  push.set_encoding(OnWire(entry.operation->encoding));
  push.set_with_values(entry.operation->asked.gives_values());
  const std::optional<Call::Sync>& sync = entry.operation->call().sync;
  if (!sync.has_value()) return;
  push.mutable_sync()->set_step(sync->step);
  push.mutable_sync()->set_replica(sync->replica);
}

template <typename Pull>
void SetPull(const EncodedOperation& operation, Pull& pull) {
  pull.set_encoding(OnWire(operation.encoding));
  pull.set_min_updates(operation.call().min_updates);
}

template <typename Dense>
void AddRanges(const ShardOperation& operation, Dense& dense) {
  for (const ShardOperation::Range& range : operation.ranges()) {
    wire::TensorRange& on_wire = *dense.add_range();
    on_wire.set_part(range.part);
    on_wire.set_first(range.first);
    on_wire.set_count(range.count);
  }
}

template <typename SomeRows>
void SetRows(const ShardOperation& operation, SomeRows& rows) {
  rows.set_table(operation.rows().table);
  rows.set_rows(operation.rows().count);
}

void SetOperation(const ShardOutbox::Entry& entry, wire::Operation& on_wire) {
  const EncodedOperation& operation = *entry.operation;
  const ShardOperation& asked = operation.asked;
  on_wire.set_id(entry.id);
  switch (asked.kind()) {
    case Kind::kPush: {
      wire::Push& push = *on_wire.mutable_push();
      SetPush(entry, push);
      AddRanges(asked, push);
      for (const uint32_t kept : operation.kept) push.add_kept(kept);
      break;
    }
    case Kind::kPull:
      SetPull(operation, *on_wire.mutable_pull());
      AddRanges(asked, *on_wire.mutable_pull());
      break;
    case Kind::kRowPush:
      SetPush(entry, *on_wire.mutable_row_push());
      SetRows(asked, *on_wire.mutable_row_push());
      on_wire.mutable_row_push()->set_with_counts(asked.rows().has_counts);
      break;
    case Kind::kRowPull:
      SetPull(operation, *on_wire.mutable_row_pull());
      SetRows(asked, *on_wire.mutable_row_pull());
      break;
  }
}

// The operation's payloads, in order.
class PayloadWriter {
 public:
  PayloadWriter(const std::shared_ptr<const void>& owner,
                std::vector<PayloadRef>& payloads)
      : owner_(owner), payloads_(payloads) {}

  void Add(const EncodedOperation& operation) {
    const std::byte* next = operation.payload.get();
    const auto add = [&](size_t bytes, const void* callers) {
      payloads_.push_back({next == nullptr ? callers : next, bytes, owner_});
      if (next != nullptr) next += bytes;
    };
    const ShardOperation& asked = operation.asked;
    const job::Encoding encoding = operation.encoding;
    switch (asked.kind()) {
      case Kind::kPush:
        for (const uint32_t kept : operation.kept) {
          add(kept * sizeof(uint32_t) + EncodedBytes(encoding, kept), nullptr);
        }
        if (!operation.kept.empty()) break;
        for (const ShardOperation::Range& range : asked.ranges()) {
          add(EncodedBytes(encoding, range.count), range.gradient);
        }
        break;
      case Kind::kPull:
        break;
      case Kind::kRowPush: {
        const ShardOperation::Rows& rows = asked.rows();
        add(rows.count * sizeof(uint64_t), rows.ids);
        add(EncodedBytes(encoding, rows.count * rows.width), rows.gradients);
        if (rows.has_counts) add(rows.count * sizeof(uint32_t), rows.counts);
        break;
      }
      case Kind::kRowPull:
        add(asked.rows().count * sizeof(uint64_t), asked.rows().ids);
        break;
    }
  }

 private:
  const std::shared_ptr<const void> owner_;
  std::vector<PayloadRef>& payloads_;
};

void ReadElements(job::Encoding encoding, PayloadReader& payloads,
                  absl::Span<float> out) {
  if (encoding == job::FLOAT32) {
    payloads.Read(out.size() * sizeof(float),
                  reinterpret_cast<std::byte*>(out.data()));
    return;
  }
  std::array<std::byte, kBlockElements * sizeof(float)> block;
  while (!out.empty()) {
    const absl::Span<float> some = out.subspan(0, kBlockElements);
    payloads.Read(EncodedBytes(encoding, some.size()), block.data());
    Decode(encoding, block.data(), some);
    out.remove_prefix(some.size());
  }
}

void ReadRows(const ShardOperation::Rows& rows, job::Encoding encoding,
              PayloadReader& payloads) {
  if (rows.positions.empty()) {
    ReadElements(encoding, payloads, {rows.target, rows.count * rows.width});
  }
  for (const uint32_t position : rows.positions) {
    ReadElements(encoding, payloads,
                 {rows.target + position * rows.width, rows.width});
  }
}

// `owner` keeps the operations and the callers' memory.
grpc::ByteBuffer EncodeOperations(
    absl::Span<const ShardOutbox::Entry> operations,
    const std::shared_ptr<const void>& owner, const MessageAddress& address,
    SharedPayloads* shared, bool more) {
  MessageMemory memory;
  auto& header = memory.Make<wire::RequestHeader>();
  header.set_run_id(*operations.front().operation->call().run_id);
  header.set_worker_incarnation(address.worker_incarnation);
  header.set_layout(address.layout);
  header.set_ps_incarnation(address.ps_incarnation);
  header.set_more(more);
  header.set_acknowledged(address.acknowledged);
  std::vector<PayloadRef> payloads;
  payloads.reserve(operations.size());
  PayloadWriter writer(owner, payloads);
  for (const ShardOutbox::Entry& entry : operations) {
    SetOperation(entry, *header.add_operation());
    writer.Add(*entry.operation);
  }
  if (shared != nullptr) {
    shared->Send(payloads, *header.mutable_shared_payload());
  }
  return EncodeFrame(header, payloads);
}

}  // namespace

OutgoingMessage::OutgoingMessage(ShardOutbox::Message operations)
    : operations_(std::move(operations)) {
  for (const ShardOutbox::Entry& entry : operations_) {
    if (!entry.operation->borrows_memory()) continue;
    entry.operation->call().completion.HoldMemory();
  }
}

OutgoingMessage::~OutgoingMessage() {
  for (const ShardOutbox::Entry& entry : operations_) {
    if (!entry.operation->borrows_memory()) continue;
    entry.operation->call().completion.ReleaseMemory();
  }
}

size_t OutgoingMessage::bytes() const {
  size_t bytes = 0;
  for (const ShardOutbox::Entry& entry : operations_) {
    bytes += entry.operation->bytes;
  }
  return bytes;
}

std::vector<grpc::ByteBuffer> EncodeMessage(
    const std::shared_ptr<const OutgoingMessage>& message,
    const MessageAddress& address, SharedPayloads* shared, size_t max_bytes) {
  std::vector<grpc::ByteBuffer> encoded;
  absl::Span<const ShardOutbox::Entry> left = message->operations();
  while (!left.empty()) {
    size_t count = 0;
    size_t bytes = 0;
    do {
      bytes += left[count++].operation->payload_bytes;
    } while (count < left.size() &&
             bytes + left[count].operation->payload_bytes <= max_bytes);
    const absl::Span<const ShardOutbox::Entry> some = left.first(count);
    left.remove_prefix(count);
    encoded.push_back(EncodeOperations(some, message, address, shared,
                                       /*more=*/!left.empty()));
  }
  return encoded;
}

PayloadReader::PayloadReader(const std::vector<PayloadView>& payloads)
    : payloads_(payloads) {
  for (const PayloadView& payload : payloads_) remaining_ += payload.size();
}

template <typename Use>
void PayloadReader::Consume(size_t bytes, Use use) {
  remaining_ -= bytes;
  while (bytes > 0) {
    const PayloadView::Pieces& pieces = payloads_[payload_].pieces();
    if (piece_ == pieces.size()) {
      ++payload_;
      piece_ = 0;
      continue;
    }
    const absl::string_view some = pieces[piece_].substr(used_, bytes);
    use(some);
    bytes -= some.size();
    used_ += some.size();
    if (used_ == pieces[piece_].size()) {
      ++piece_;
      used_ = 0;
    }
  }
}

void PayloadReader::Read(size_t bytes, std::byte* out) {
  Consume(bytes, [&](absl::string_view some) {
    const void* target = out;
    if (some.data() != target) std::memmove(out, some.data(), some.size());
    out += some.size();
  });
}

void PayloadReader::Skip(size_t bytes) {
  Consume(bytes, [](absl::string_view) {});
}

absl::Status ReadResult(const wire::Result& result,
                        const EncodedOperation* operation,
                        PayloadReader& payloads) {
  const size_t bytes =
      std::min<uint64_t>(result.payload_bytes(), payloads.remaining());
  const size_t wanted =
      operation == nullptr || result.code() != 0 ? 0 : AnswerBytes(*operation);
  if (wanted == 0 || bytes != wanted) payloads.Skip(bytes);
  if (operation == nullptr || result.code() != 0) return absl::OkStatus();
  if (bytes == 0 && wanted > 0 && operation->call().is_push) {
    return absl::InternalError(
        "a push-pull was answered without values: the ps is of an older "
        "version; run ps and workers of one");
  }
  if (bytes != wanted) {
    return absl::InternalError(
        absl::StrFormat("%d bytes for elements of %d", bytes, wanted));
  }
  const ShardOperation& asked = operation->asked;
  if (!asked.gives_values()) return absl::OkStatus();
  if (asked.is_dense()) {
    for (const ShardOperation::Range& range : asked.ranges()) {
      ReadElements(operation->encoding, payloads, {range.target, range.count});
    }
  } else {
    ReadRows(asked.rows(), operation->encoding, payloads);
  }
  return absl::OkStatus();
}

}  // namespace parasol
