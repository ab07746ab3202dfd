#include "tool/checkpoint/poll_interval_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(absl::Duration, poll_interval, absl::Seconds(1),
          "How often to look for a newer checkpoint.");
