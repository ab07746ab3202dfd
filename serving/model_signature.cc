#include "serving/model_signature.h"

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

using tensorflow::TensorInfo;

constexpr char kMethod[] = "tensorflow/serving/predict";
constexpr int64_t kAnySize = -1;

tensorflow::DataType TypeOf(GivenColumn::Kind kind) {
  switch (kind) {
    case GivenColumn::Kind::kNumbers:
      return tensorflow::DT_FLOAT;
    case GivenColumn::Kind::kPixels:
      return tensorflow::DT_UINT8;
    case GivenColumn::Kind::kIds:
      return tensorflow::DT_INT64;
    case GivenColumn::Kind::kTexts:
    case GivenColumn::Kind::kSparse:
      break;
  }
  return tensorflow::DT_STRING;
}

void AddAxis(TensorInfo& info, int64_t size) {
  info.mutable_tensor_shape()->add_dim()->set_size(size);
}

TensorInfo InfoOf(const std::string& name, tensorflow::DataType type) {
  TensorInfo info;
  info.set_name(absl::StrCat(name, ":0"));
  info.set_dtype(type);
  AddAxis(info, kAnySize);
  return info;
}

TensorInfo InfoOf(const GivenColumn& column) {
  TensorInfo info = InfoOf(column.name, TypeOf(column.kind));
  for (const int64_t axis : column.shape) AddAxis(info, axis);
  if (!column.count().has_value()) AddAxis(info, kAnySize);
  return info;
}

TensorInfo InfoOf(const SignatureOutput& output) {
  TensorInfo info = InfoOf(output.name, tensorflow::DT_FLOAT);
  AddAxis(info, output.width);
  return info;
}

}  // namespace

tensorflow::serving::SignatureDefMap SignatureDefsOf(
    const ModelSignature& model) {
  tensorflow::serving::SignatureDefMap signatures;
  for (const auto& [name, outputs] : model.signatures) {
    tensorflow::SignatureDef& signature =
        (*signatures.mutable_signature_def())[name];
    signature.set_method_name(kMethod);
    for (const GivenColumn& column : model.columns) {
      (*signature.mutable_inputs())[column.name] = InfoOf(column);
    }
    for (const SignatureOutput& output : outputs) {
      (*signature.mutable_outputs())[output.name] = InfoOf(output);
    }
  }
  return signatures;
}

}  // namespace parasol
