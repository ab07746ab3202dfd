#ifndef PARASOL_PARAMETERS_CLIENT_EXCHANGE_PENDING_H_
#define PARASOL_PARAMETERS_CLIENT_EXCHANGE_PENDING_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "parameters/client/shard_operation.h"
#include "parameters/training_parameters.h"

namespace parasol {

// A call whose operations have been sent. Several may wait for one call.
class ExchangePending : public TrainingParameters::Pending {
 public:
  ExchangePending(std::shared_ptr<const Call> call, Clock& clock)
      : call_(std::move(call)), clock_(clock) {}

  // The caller's memory is in use until then.
  ~ExchangePending() override { call_->completion.Wait().IgnoreError(); }

  absl::Status Wait() override { return call_->completion.Wait(); }
  bool WaitFor(absl::Duration limit) override {
    return call_->completion.WaitFor(clock_, limit);
  }
  Outcome outcome() const override { return call_->completion.outcome(); }

 private:
  const std::shared_ptr<const Call> call_;
  Clock& clock_;
};

// Two requests as one: done when both are.
class JoinedPending : public TrainingParameters::Pending {
 public:
  using Part = std::unique_ptr<TrainingParameters::Pending>;

  JoinedPending(Part first, Part second, Clock& clock)
      : first_(std::move(first)), second_(std::move(second)), clock_(clock) {}

  absl::Status Wait() override {
    absl::Status status = first_->Wait();
    status.Update(second_->Wait());
    return status;
  }
  bool WaitFor(absl::Duration limit) override {
    const absl::Time end = clock_.Now() + limit;
    return first_->WaitFor(limit) && second_->WaitFor(end - clock_.Now());
  }
  Outcome outcome() const override {
    Outcome outcome = first_->outcome();
    outcome.Join(second_->outcome());
    return outcome;
  }

 private:
  const Part first_;
  const Part second_;
  Clock& clock_;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_EXCHANGE_PENDING_H_
