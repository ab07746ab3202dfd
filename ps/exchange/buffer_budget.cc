#include "ps/exchange/buffer_budget.h"

#include <utility>

namespace parasol {

// Adds its bytes to the budget, and to a stream's share if there is one.
class BufferBudget::Charged {
 public:
  Charged(std::shared_ptr<BufferBudget> budget,
          std::shared_ptr<std::atomic<int64_t>> own, int64_t bytes,
          std::shared_ptr<const void> owner)
      : budget_(std::move(budget)),
        own_(std::move(own)),
        bytes_(bytes),
        owner_(std::move(owner)) {
    Add(bytes_);
  }
  ~Charged() { Add(-bytes_); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

 private:
  void Add(int64_t bytes) {
    budget_->held_.fetch_add(bytes, std::memory_order_relaxed);
    if (own_ != nullptr) own_->fetch_add(bytes, std::memory_order_relaxed);
  }

  const std::shared_ptr<BufferBudget> budget_;
  const std::shared_ptr<std::atomic<int64_t>> own_;
  const int64_t bytes_;
  const std::shared_ptr<const void> owner_;
};

std::shared_ptr<BufferBudget> BufferBudget::Create(int64_t limit_bytes) {
  return std::shared_ptr<BufferBudget>(new BufferBudget(limit_bytes));
}

BufferBudget::Hold BufferBudget::Take(int64_t bytes) {
  return Hold(
      std::make_shared<Charged>(shared_from_this(), nullptr, bytes, nullptr));
}

BufferBudget::Share::Share(std::shared_ptr<BufferBudget> budget)
    : budget_(std::move(budget)),
      own_(std::make_shared<std::atomic<int64_t>>(0)) {
  ++budget_->shares_;
}

BufferBudget::Share::~Share() { --budget_->shares_; }

bool BufferBudget::Share::MayTakeMore() const {
  const int64_t own = own_->load(std::memory_order_relaxed);
  return own == 0 || (budget_->held_bytes() < budget_->limit_bytes_ &&
                      own < budget_->limit_bytes_ / budget_->shares_);
}

void BufferBudget::Share::Charge(PayloadRef& payload) {
  payload.owner = std::make_shared<Charged>(budget_, own_,
                                            static_cast<int64_t>(payload.size),
                                            std::move(payload.owner));
}

}  // namespace parasol
