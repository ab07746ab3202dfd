#include "tool/json_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(bool, json, false, "Prints one JSON object.");
