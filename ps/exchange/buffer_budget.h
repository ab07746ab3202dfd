#ifndef PARASOL_PS_EXCHANGE_BUFFER_BUDGET_H_
#define PARASOL_PS_EXCHANGE_BUFFER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "cluster/rpc/payload.h"

namespace parasol {

// The bytes that all streams of a ps together hold in received messages and in
// responses that are not sent yet. Thread-safe.
//
// A stream may take one more message in two cases. One: all streams together
// hold less than the limit, and the stream's own responses hold less than an
// equal share of it. A stream whose worker does not read its responses thus
// leaves room for the others. Two: none of the stream's responses waits, so
// that every stream goes on. All streams together hold at most the limit and
// one message per stream. Responses in shared memory are not counted: a stream
// has at most 32 MiB of it (SharedPayloads).
class BufferBudget : public std::enable_shared_from_this<BufferBudget> {
 public:
  static std::shared_ptr<BufferBudget> Create(int64_t limit_bytes);

  int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }

  // Counts bytes until it is destroyed. May outlive the budget's other users.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&&) = default;
    Hold& operator=(Hold&&) = default;

   private:
    friend class BufferBudget;
    explicit Hold(std::shared_ptr<const void> counted)
        : counted_(std::move(counted)) {}
    std::shared_ptr<const void> counted_;
  };
  // Counts the bytes of a received message.
  Hold Take(int64_t bytes);

  // The bytes that one open stream's responses hold.
  class Share {
   public:
    explicit Share(std::shared_ptr<BufferBudget> budget);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    bool MayTakeMore() const;
    // Counts the payload's bytes until its owner is released.
    void Charge(PayloadRef& payload);

   private:
    const std::shared_ptr<BufferBudget> budget_;
    const std::shared_ptr<std::atomic<int64_t>> own_;
  };

 private:
  class Charged;

  explicit BufferBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  const int64_t limit_bytes_;
  std::atomic<int64_t> held_ = 0;
  std::atomic<int64_t> shares_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_BUFFER_BUDGET_H_
