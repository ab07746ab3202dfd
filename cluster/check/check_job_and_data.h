#ifndef PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_
#define PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cluster/check/job_report.h"
#include "cluster/job/check_job.h"
#include "proto/job.pb.h"

namespace parasol {

struct CheckOptions {
  std::string data_dir = {};  // empty: data are not looked at
  int64_t max_examples = 1'000'000;
  // Bytes of each data set that are read, for a sample; 0: all.
  int64_t sample_bytes = 0;
  int workers = 1;
  int ps = 1;
  // Gives a job the strategy and the numbers of who trains it; `variables`: how
  // many the model has, if that is known. Null: a cluster of `workers`.
  std::function<absl::Status(std::optional<size_t> variables, job::Job& job)>
      fit = nullptr;
  // True if the job has trained with its data before: what is wrong with them
  // is a warning then.
  bool goes_on = false;
  // True if other programs have code of users' own that this one lacks: what
  // needs it is left to them.
  bool code_is_elsewhere = false;
};

// Checks the data of `job` as far as its faults allow, and works out its end
// and the memory that its roles need. Returns all that was found, the faults of
// the job itself included; `job` gets the data's faults, too.
JobReport CheckJobAndData(CheckedJob& job, const CheckOptions& options);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_
