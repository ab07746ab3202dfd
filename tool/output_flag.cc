#include "tool/output_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, output, "",
          "Where to write; folders are made. An export: a file; for tensorflow "
          "a prefix; for csv a directory that does not exist. Publish: a "
          "directory of versions. A prediction: a file .csv, .jsonl, .npy or "
          ".tfrecord. A check with --adapt, and "
          "init: the job file. A trace: a file .json.");
