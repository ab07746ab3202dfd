#include "tool/format_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(
    std::string, format, "",
    "safetensors, npz, tensorflow or csv; export: or onnx, the whole model; "
    "import: or pytorch, keras. An import finds it by the name or the files if "
    "it is "
    "empty.");
