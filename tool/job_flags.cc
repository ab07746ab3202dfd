#include "tool/job_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(parasol::RepeatedFlag, set, {},
          "path=value: changes a field of the job. May be given several "
          "times.");
