#ifndef PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_
#define PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_

#include <cstdint>
#include <string>

#include "cluster/check/job_report.h"
#include "cluster/job/check_job.h"

namespace parasol {

struct CheckOptions {
  std::string data_dir = {};  // empty: data are not looked at
  int64_t max_examples = 1'000'000;
  int workers = 1;
  int ps = 1;
};

// Checks the data of `job` as far as its faults allow, and works out its end
// and the memory that its roles need. Returns all that was found, the faults of
// the job itself included; `job` gets those of the data.
JobReport CheckJobAndData(CheckedJob& job, const CheckOptions& options);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_CHECK_JOB_AND_DATA_H_
