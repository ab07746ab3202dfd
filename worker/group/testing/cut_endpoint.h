#ifndef PARASOL_WORKER_GROUP_TESTING_CUT_ENDPOINT_H_
#define PARASOL_WORKER_GROUP_TESTING_CUT_ENDPOINT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/collective/collective.h"

namespace parasol::group_testing {

// An endpoint whose group is cut off when it begins its nth operation, counted
// from 1 over all groups; 0: never. The other ranks lose it.
class CutEndpoint : public CollectiveEndpoint {
 public:
  // Calls of a test at certain moments. Set before the first Join().
  struct Hooks {
    // Called by Join(), which returns its error.
    std::function<absl::Status(const CollectiveGroup&)> join;
    // Called after an all-reduce has begun.
    std::function<void()> sum;
    // Called before an all-reduce says that it has ended with an error.
    std::function<void()> sum_error;
    // Called before the operations of a group that has ended are awaited.
    std::function<void()> await_ended;
  };

  CutEndpoint(std::unique_ptr<CollectiveEndpoint> endpoint, int cut_at)
      : endpoint_(std::move(endpoint)), cut_at_(cut_at) {}

  absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) override {
    if (hooks_.join != nullptr) {
      const absl::Status status = hooks_.join(group);
      if (!status.ok()) return status;
    }
    auto joined = endpoint_->Join(group, limit);
    if (!joined.ok()) return joined.status();
    return std::make_unique<CutCollective>(*this, *std::move(joined));
  }
  void CancelJoin(int64_t epoch) override { endpoint_->CancelJoin(epoch); }

  int begun() const { return begun_; }
  Hooks& hooks() { return hooks_; }

 private:
  class CutCollective : public Collective {
   public:
    CutCollective(CutEndpoint& endpoint, std::unique_ptr<Collective> inner)
        : endpoint_(endpoint), inner_(std::move(inner)) {}

    const CollectiveGroup& group() const override { return inner_->group(); }
    void AllReduce(std::vector<Contribution> contributions,
                   absl::Span<float> sum, Done done) override {
      Begin();
      const auto notify = [this,
                           done = std::move(done)](const absl::Status& result) {
        const auto& hook = endpoint_.hooks_.sum_error;
        if (!result.ok() && hook != nullptr) hook();
        done(result);
      };
      inner_->AllReduce(std::move(contributions), sum, notify);
      if (endpoint_.hooks_.sum != nullptr) endpoint_.hooks_.sum();
    }
    void ReduceScatter(std::vector<Contribution> contributions, size_t count,
                       absl::Span<float> slice, Done done) override {
      Begin();
      inner_->ReduceScatter(std::move(contributions), count, slice,
                            std::move(done));
    }
    void AllGather(absl::string_view own, std::vector<std::string>* gathered,
                   Done done) override {
      Begin();
      inner_->AllGather(own, gathered, std::move(done));
    }
    void Broadcast(int source, const std::vector<int>& receivers,
                   absl::Span<std::byte> bytes, Done done) override {
      Begin();
      inner_->Broadcast(source, receivers, bytes, std::move(done));
    }
    absl::Status Await() override {
      const auto& hook = endpoint_.hooks_.await_ended;
      if (!inner_->status().ok() && hook != nullptr) hook();
      return inner_->Await();
    }
    std::vector<int> Awaited() const override { return inner_->Awaited(); }
    void Abort(const absl::Status& why) override { inner_->Abort(why); }
    absl::Status status() const override { return inner_->status(); }
    std::shared_ptr<float[]> AllocateContribution(size_t count) override {
      return inner_->AllocateContribution(count);
    }

   private:
    void Begin() {
      if (++endpoint_.begun_ != endpoint_.cut_at_) return;
      inner_->Abort(RankLostError(inner_->group(), inner_->group().own_rank,
                                  "the test has cut it off"));
    }

    CutEndpoint& endpoint_;
    const std::unique_ptr<Collective> inner_;
  };

  const std::unique_ptr<CollectiveEndpoint> endpoint_;
  const int cut_at_;
  Hooks hooks_;
  std::atomic<int> begun_ = 0;
};

}  // namespace parasol::group_testing

#endif  // PARASOL_WORKER_GROUP_TESTING_CUT_ENDPOINT_H_
