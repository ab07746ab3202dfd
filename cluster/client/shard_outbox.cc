#include "cluster/client/shard_outbox.h"

#include <utility>

namespace parasol {

ShardOutbox::ShardOutbox(size_t lanes, const Limits& limits)
    : limits_(limits), lanes_(lanes) {}

void ShardOutbox::Add(RequestPtr request) {
  Lane& lane = lanes_[request->lane];
  request->id = lane.first_id + lane.requests.size();
  lane.requests.push_back(std::move(request));
  ++unanswered_;
}

ShardOutbox::Message ShardOutbox::Take(size_t index) {
  Lane& lane = lanes_[index];
  Message message;
  size_t bytes = 0;
  size_t payloads = 0;
  for (; lane.departed < lane.requests.size(); ++lane.departed) {
    const RequestPtr& request = lane.requests[lane.departed];
    if (request == nullptr) continue;
    if (!FitsInto(message, bytes, payloads, *request) ||
        !MayLeave(lane, *request)) {
      break;
    }
    Depart(lane, *request);
    bytes += request->bytes;
    payloads += request->payloads;
    message.push_back(request);
  }
  return message;
}

bool ShardOutbox::FitsInto(const Message& message, size_t bytes,
                           size_t payloads, const ShardRequest& request) const {
  return message.empty() ||
         (bytes + request.bytes <= limits_.message_bytes &&
          payloads + request.payloads <= kMaxRangesPerMessage &&
          message.size() < limits_.message_requests &&
          message.front()->run_id == request.run_id);
}

bool ShardOutbox::MayLeave(const Lane& lane,
                           const ShardRequest& request) const {
  if (lane.departed >= kMaxSpan) return false;
  if (request.has_sequence() && request.sequence == 0 &&
      next_sequence_ >= oldest_unanswered_ + kDedupWindow) {
    return false;
  }
  if (request.waits_for_others() || lane.in_flight == 0) return true;
  return lane.in_flight < limits_.in_flight_requests &&
         lane.in_flight_bytes + request.bytes <= limits_.in_flight_bytes;
}

void ShardOutbox::Depart(Lane& lane, ShardRequest& request) {
  if (request.has_sequence() && request.sequence == 0) {
    request.sequence = next_sequence_++;
  }
  if (request.waits_for_others()) {
    ++held_;
  } else {
    ++lane.in_flight;
    lane.in_flight_bytes += request.bytes;
  }
}

void ShardOutbox::Arrive(Lane& lane, const ShardRequest& request) {
  if (request.waits_for_others()) {
    --held_;
  } else {
    --lane.in_flight;
    lane.in_flight_bytes -= request.bytes;
  }
}

ShardOutbox::RequestPtr ShardOutbox::Answer(size_t index, uint64_t id) {
  Lane& lane = lanes_[index];
  if (id < lane.first_id || id - lane.first_id >= lane.departed) return nullptr;
  RequestPtr request = std::move(lane.requests[id - lane.first_id]);
  if (request == nullptr) return nullptr;
  while (!lane.requests.empty() && lane.requests.front() == nullptr) {
    lane.requests.pop_front();
    ++lane.first_id;
    if (lane.departed > 0) --lane.departed;
  }
  Arrive(lane, *request);
  if (request->has_sequence()) AnswerSequence(request->sequence);
  --unanswered_;
  return request;
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
    if (lane.requests[i] != nullptr) Arrive(lane, *lane.requests[i]);
  }
  lane.departed = 0;
}

ShardOutbox::Message ShardOutbox::TakeAll() {
  Message all;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Rewind(i);
    Lane& lane = lanes_[i];
    for (RequestPtr& request : lane.requests) {
      if (request != nullptr) all.push_back(std::move(request));
    }
    lane.first_id += lane.requests.size();
    lane.requests.clear();
  }
  unanswered_ = 0;
  oldest_unanswered_ = next_sequence_;
  answered_.reset();
  return all;
}

bool ShardOutbox::HasWaiting(size_t index) const {
  const Lane& lane = lanes_[index];
  return lane.departed < lane.requests.size();
}

}  // namespace parasol
