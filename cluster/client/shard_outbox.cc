#include "cluster/client/shard_outbox.h"

#include <utility>

namespace parasol {

ShardOutbox::ShardOutbox(size_t lanes, const Limits& limits)
    : limits_(limits), lanes_(lanes) {}

void ShardOutbox::Add(OperationPtr operation) {
  Lane& lane = lanes_[operation->lane];
  operation->id = lane.first_id + lane.operations.size();
  lane.operations.push_back(std::move(operation));
  ++unanswered_;
}

ShardOutbox::Message ShardOutbox::Take(size_t index) {
  Lane& lane = lanes_[index];
  Message message;
  size_t bytes = 0;
  size_t payloads = 0;
  for (; lane.departed < lane.operations.size(); ++lane.departed) {
    const OperationPtr& operation = lane.operations[lane.departed];
    if (operation == nullptr) continue;
    if (!FitsInto(message, bytes, payloads, *operation) ||
        !MayLeave(lane, *operation)) {
      break;
    }
    Depart(lane, *operation);
    bytes += operation->bytes;
    payloads += operation->payloads;
    message.push_back(operation);
  }
  return message;
}

bool ShardOutbox::FitsInto(const Message& message, size_t bytes,
                           size_t payloads,
                           const ShardOperation& operation) const {
  return message.empty() ||
         (bytes + operation.bytes <= limits_.message_bytes &&
          payloads + operation.payloads <= kMaxRangesPerMessage &&
          message.size() < limits_.message_operations &&
          message.front()->run_id == operation.run_id);
}

bool ShardOutbox::MayLeave(const Lane& lane,
                           const ShardOperation& operation) const {
  if (lane.departed >= kMaxSpan) return false;
  if (operation.has_sequence() && operation.sequence == 0 &&
      next_sequence_ >= oldest_unanswered_ + kDedupWindow) {
    return false;
  }
  if (operation.waits_for_others() || lane.in_flight == 0) return true;
  return lane.in_flight < limits_.in_flight_operations &&
         lane.in_flight_bytes + operation.bytes <= limits_.in_flight_bytes;
}

void ShardOutbox::Depart(Lane& lane, ShardOperation& operation) {
  if (operation.has_sequence() && operation.sequence == 0) {
    operation.sequence = next_sequence_++;
  }
  if (operation.waits_for_others()) {
    ++held_;
  } else {
    ++lane.in_flight;
    lane.in_flight_bytes += operation.bytes;
  }
}

void ShardOutbox::Arrive(Lane& lane, const ShardOperation& operation) {
  if (operation.waits_for_others()) {
    --held_;
  } else {
    --lane.in_flight;
    lane.in_flight_bytes -= operation.bytes;
  }
}

ShardOutbox::OperationPtr ShardOutbox::Answer(size_t index, uint64_t id) {
  Lane& lane = lanes_[index];
  if (id < lane.first_id || id - lane.first_id >= lane.departed) return nullptr;
  OperationPtr operation = std::move(lane.operations[id - lane.first_id]);
  if (operation == nullptr) return nullptr;
  while (!lane.operations.empty() && lane.operations.front() == nullptr) {
    lane.operations.pop_front();
    ++lane.first_id;
    if (lane.departed > 0) --lane.departed;
  }
  Arrive(lane, *operation);
  if (operation->has_sequence()) AnswerSequence(operation->sequence);
  --unanswered_;
  return operation;
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
    if (lane.operations[i] != nullptr) Arrive(lane, *lane.operations[i]);
  }
  lane.departed = 0;
}

ShardOutbox::Message ShardOutbox::TakeAll() {
  Message all;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Rewind(i);
    Lane& lane = lanes_[i];
    for (OperationPtr& operation : lane.operations) {
      if (operation != nullptr) all.push_back(std::move(operation));
    }
    lane.first_id += lane.operations.size();
    lane.operations.clear();
  }
  unanswered_ = 0;
  oldest_unanswered_ = next_sequence_;
  answered_.reset();
  return all;
}

bool ShardOutbox::HasWaiting(size_t index) const {
  const Lane& lane = lanes_[index];
  return lane.departed < lane.operations.size();
}

}  // namespace parasol
