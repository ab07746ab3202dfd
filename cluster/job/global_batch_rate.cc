#include "cluster/job/global_batch_rate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/job/learning_rate_field.h"

namespace parasol {
namespace {

constexpr char kRateByBatchField[] = "learning_rate_by_global_batch";

absl::Status RateFault(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(kRateByBatchField, what));
}

std::optional<double> RateOf(int64_t global_batch,
                             const job::LearningRateByGlobalBatch& rates) {
  if (rates.linear()) {
    return rates.rate(0) * static_cast<double>(global_batch) / rates.batch(0);
  }
  const auto found =
      std::find(rates.batch().begin(), rates.batch().end(), global_batch);
  if (found == rates.batch().end()) return std::nullopt;
  return rates.rate(static_cast<int>(found - rates.batch().begin()));
}

}  // namespace

absl::Status CheckGlobalBatchRates(const job::Optimizer& optimizer) {
  if (!optimizer.has_learning_rate_by_global_batch()) return absl::OkStatus();
  const job::LearningRateByGlobalBatch& rates =
      optimizer.learning_rate_by_global_batch();
  if (rates.batch().empty() || rates.batch_size() != rates.rate_size()) {
    return RateFault(absl::StrCat(": ", rates.batch_size(), " batches and ",
                                  rates.rate_size(),
                                  " rates; give each batch its rate"));
  }
  if (rates.linear() && rates.batch_size() > 1) {
    return RateFault(absl::StrCat(".linear: ", rates.batch_size(),
                                  " batches; a linear rate needs one"));
  }
  for (int i = 0; i < rates.batch_size(); ++i) {
    if (rates.batch(i) < 1) {
      return RateFault(
          absl::StrCat(".batch: ", rates.batch(i), " examples; use 1 or more"));
    }
    if (!std::isfinite(rates.rate(i)) || rates.rate(i) < 0) {
      return RateFault(absl::StrCat(".rate: ", rates.rate(i),
                                    "; use a number of at least 0"));
    }
    const auto before = rates.batch().begin() + i;
    if (std::find(rates.batch().begin(), before, rates.batch(i)) != before) {
      return RateFault(absl::StrCat(".batch: ", rates.batch(i),
                                    " is there twice; remove one"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetRateOfGlobalBatch(int64_t batch, int replicas,
                                  job::Optimizer& optimizer) {
  if (!optimizer.has_learning_rate_by_global_batch()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckGlobalBatchRates(optimizer));
  const job::LearningRateByGlobalBatch& rates =
      optimizer.learning_rate_by_global_batch();
  const std::optional<double> rate = RateOf(batch * replicas, rates);
  if (!rate.has_value()) {
    return RateFault(absl::StrCat(
        ": no rate for a global batch of ", batch * replicas, " examples (",
        replicas, replicas == 1 ? " replica" : " replicas", " of ", batch,
        "), only for ", absl::StrJoin(rates.batch(), ", "),
        "; add one, or change the batch or the replicas"));
  }
  SetInitialLearningRate(*rate, optimizer);
  optimizer.clear_learning_rate_by_global_batch();
  return absl::OkStatus();
}

}  // namespace parasol
