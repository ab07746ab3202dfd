#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_RECEIVE_ALLOWANCE_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_RECEIVE_ALLOWANCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace parasol {

// The bytes of messages that have begun to arrive on any lane of a ps and are
// not whole. Thread-safe.
class ReceiveAllowance {
 public:
  explicit ReceiveAllowance(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Counts a message of `bytes`. Returns false, and counts nothing, if there is
  // no room for it; a message always fits that is alone.
  bool Take(size_t bytes) {
    const int64_t before = held_.fetch_add(bytes);
    if (before == 0 || before + static_cast<int64_t>(bytes) <= limit_bytes_) {
      return true;
    }
    held_.fetch_sub(bytes);
    return false;
  }
  void Return(size_t bytes) { held_.fetch_sub(bytes); }

  int64_t held_bytes() const { return held_; }

 private:
  const int64_t limit_bytes_;
  std::atomic<int64_t> held_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_RECEIVE_ALLOWANCE_H_
