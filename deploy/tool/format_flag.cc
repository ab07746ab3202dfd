#include "deploy/tool/format_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, format, "",
          "safetensors, npz, tensorflow or csv. Of an import: empty stands for "
          "what the name or the files say.");
