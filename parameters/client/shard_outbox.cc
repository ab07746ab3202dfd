#include "parameters/client/shard_outbox.h"

#include <utility>

namespace parasol {

ShardOutbox::ShardOutbox(size_t lanes, const Limits& limits)
    : limits_(limits), lanes_(lanes) {}

void ShardOutbox::Add(OperationPtr operation) {
  Lane& lane = lanes_[operation->asked.lane];
  const uint64_t id = lane.first_id + lane.entries.size();
  lane.entries.push_back({.operation = std::move(operation), .id = id});
  ++unanswered_;
}

ShardOutbox::Message ShardOutbox::Take(size_t index) {
  Lane& lane = lanes_[index];
  Message message;
  size_t bytes = 0;
  size_t payloads = 0;
  for (; lane.departed < lane.entries.size(); ++lane.departed) {
    Entry& entry = lane.entries[lane.departed];
    if (entry.operation == nullptr) continue;
    if (!FitsInto(message, bytes, payloads, *entry.operation) ||
        !MayLeave(lane, entry)) {
      break;
    }
    Depart(lane, entry);
    bytes += entry.operation->bytes;
    payloads += entry.operation->payloads;
    message.push_back(entry);
    entry.was_sent = true;
  }
  return message;
}

bool ShardOutbox::FitsInto(const Message& message, size_t bytes,
                           size_t payloads,
                           const EncodedOperation& operation) const {
  return message.empty() ||
         (bytes + operation.bytes <= limits_.message_bytes &&
          payloads + operation.payloads <= kMaxRangesPerMessage &&
          message.size() < limits_.message_operations &&
          message.front().operation->call().run_id == operation.call().run_id);
}

bool ShardOutbox::MayLeave(const Lane& lane, const Entry& entry) const {
  if (lane.departed >= kMaxSpan) return false;
  const ShardOperation& asked = entry.operation->asked;
  if (asked.has_sequence() && entry.sequence == 0 &&
      next_sequence_ >= oldest_unanswered_ + kDedupWindow) {
    return false;
  }
  if (asked.call->waits_for_others() || lane.in_flight == 0) return true;
  return lane.in_flight < limits_.in_flight_operations &&
         lane.in_flight_bytes + entry.operation->bytes <=
             limits_.in_flight_bytes;
}

void ShardOutbox::Depart(Lane& lane, Entry& entry) {
  const ShardOperation& asked = entry.operation->asked;
  if (asked.has_sequence() && entry.sequence == 0) {
    entry.sequence = next_sequence_++;
  }
  if (asked.call->waits_for_others()) {
    ++held_;
  } else {
    ++lane.in_flight;
    lane.in_flight_bytes += entry.operation->bytes;
  }
}

void ShardOutbox::Arrive(Lane& lane, const EncodedOperation& operation) {
  if (operation.call().waits_for_others()) {
    --held_;
  } else {
    --lane.in_flight;
    lane.in_flight_bytes -= operation.bytes;
  }
}

ShardOutbox::OperationPtr ShardOutbox::InFlight(size_t index,
                                                uint64_t id) const {
  const Lane& lane = lanes_[index];
  if (id < lane.first_id || id - lane.first_id >= lane.departed) return nullptr;
  return lane.entries[id - lane.first_id].operation;
}

ShardOutbox::Entry ShardOutbox::Answer(size_t index, uint64_t id) {
  Lane& lane = lanes_[index];
  if (id < lane.first_id || id - lane.first_id >= lane.departed) return {};
  Entry answered = std::exchange(lane.entries[id - lane.first_id], {});
  if (answered.operation == nullptr) return {};
  while (!lane.entries.empty() && lane.entries.front().operation == nullptr) {
    lane.entries.pop_front();
    ++lane.first_id;
    if (lane.departed > 0) --lane.departed;
  }
  Arrive(lane, *answered.operation);
  if (answered.operation->asked.has_sequence()) {
    AnswerSequence(answered.sequence);
  }
  --unanswered_;
  return answered;
}

void ShardOutbox::AnswerSequence(uint64_t sequence) {
  if (sequence < oldest_unanswered_) return;
  answered_.set(sequence % kDedupWindow);
  while (oldest_unanswered_ < next_sequence_ &&
         answered_.test(oldest_unanswered_ % kDedupWindow)) {
    answered_.reset(oldest_unanswered_ % kDedupWindow);
    ++oldest_unanswered_;
  }
}

void ShardOutbox::Rewind(size_t index) {
  Lane& lane = lanes_[index];
  for (size_t i = 0; i < lane.departed; ++i) {
    const OperationPtr& operation = lane.entries[i].operation;
    if (operation != nullptr) Arrive(lane, *operation);
  }
  lane.departed = 0;
}

ShardOutbox::Message ShardOutbox::TakeAll() {
  Message all;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Rewind(i);
    Lane& lane = lanes_[i];
    for (Entry& entry : lane.entries) {
      if (entry.operation != nullptr) all.push_back(std::move(entry));
    }
    lane.first_id += lane.entries.size();
    lane.entries.clear();
  }
  unanswered_ = 0;
  all_acknowledged_ &= oldest_unanswered_ == next_sequence_;
  oldest_unanswered_ = next_sequence_;
  answered_.reset();
  return all;
}

bool ShardOutbox::HasWaiting(size_t index) const {
  const Lane& lane = lanes_[index];
  return lane.departed < lane.entries.size();
}

bool ShardOutbox::LeavesInTurn(size_t index) const {
  const Lane& lane = lanes_[index];
  const bool is_busy = lane.in_flight >= kBusyOperations;
  return HasWaitingBytes(lane, is_busy ? 1 : kTurnBytes);
}

bool ShardOutbox::HasWaitingBytes(const Lane& lane, size_t bytes) const {
  size_t waiting = 0;
  for (size_t i = lane.departed; i < lane.entries.size(); ++i) {
    const Entry& entry = lane.entries[i];
    if (entry.operation == nullptr) continue;
    if (waiting == 0 && !MayLeave(lane, entry)) return false;
    waiting += entry.operation->bytes;
    if (waiting >= bytes) return true;
  }
  return false;
}

}  // namespace parasol
