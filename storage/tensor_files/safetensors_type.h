#ifndef PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_TYPE_H_
#define PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_TYPE_H_

#include <utility>

#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// The names that safetensors has for the types of elements.
inline constexpr std::pair<ElementType, absl::string_view> kSafetensorsTypes[] =
    {{ElementType::kFloat16, "F16"}, {ElementType::kBfloat16, "BF16"},
     {ElementType::kFloat32, "F32"}, {ElementType::kFloat64, "F64"},
     {ElementType::kInt32, "I32"},   {ElementType::kInt64, "I64"},
     {ElementType::kUint64, "U64"},  {ElementType::kUint8, "U8"}};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SAFETENSORS_TYPE_H_
