#include "tool/data_dir_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, data_dir, ".",
          "Where the files are that the job's data sets name.");
