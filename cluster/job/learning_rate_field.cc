#include "cluster/job/learning_rate_field.h"

#include "base/log.h"

namespace parasol {
namespace {

constexpr char kField[] = "learning_rate";

const google::protobuf::FieldDescriptor* KindOf(
    const job::Optimizer& optimizer) {
  const auto* const kinds =
      job::Optimizer::descriptor()->FindOneofByName("kind");
  const auto* const kind =
      optimizer.GetReflection()->GetOneofFieldDescriptor(optimizer, kinds);
  CHECK(kind != nullptr) << "an optimizer that was not checked";
  return kind;
}

}  // namespace

double InitialLearningRate(const job::Optimizer& optimizer) {
  const google::protobuf::Message& settings =
      optimizer.GetReflection()->GetMessage(optimizer, KindOf(optimizer));
  return settings.GetReflection()->GetDouble(
      settings, settings.GetDescriptor()->FindFieldByName(kField));
}

void SetInitialLearningRate(double rate, job::Optimizer& optimizer) {
  google::protobuf::Message& settings =
      *optimizer.GetReflection()->MutableMessage(&optimizer, KindOf(optimizer));
  settings.GetReflection()->SetDouble(
      &settings, settings.GetDescriptor()->FindFieldByName(kField), rate);
}

}  // namespace parasol
