#ifndef PARASOL_PS_EXCHANGE_BUFFER_BUDGET_H_
#define PARASOL_PS_EXCHANGE_BUFFER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "cluster/rpc/payload.h"

namespace parasol {

// How many bytes all streams of a ps together hold in messages that they have
// received and in responses that are not sent yet. Thread-safe.
//
// A stream may take a message more while all hold less than the limit and its
// own responses are less than an equal share of it, so that those that don't
// read theirs leave something to the others; and always when none of its
// responses waits, so that each goes on. All together hold no more than the
// limit and one message per stream. Responses in shared memory are not
// counted: a stream has 32 MiB of that at most (SharedPayloads).
class BufferBudget : public std::enable_shared_from_this<BufferBudget> {
 public:
  static std::shared_ptr<BufferBudget> Create(int64_t limit_bytes);

  int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }

  // Counts bytes until it is destroyed; lives as long as it likes.
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
  // For a received message.
  Hold Take(int64_t bytes);

  // What one open stream's responses hold.
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
