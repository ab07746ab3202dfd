#include "ml/zoo/named_model.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/zoo/lenet.h"
#include "ml/zoo/mlp.h"
#include "ml/zoo/resnet_cifar.h"
#include "ml/zoo/softmax_regression.h"

namespace parasol::zoo {
namespace {

// Moves the value of `option`, where it is set, to `field`: options that are
// still set after the model was made are not the model's.
template <typename T>
void Take(std::optional<T>& option, T& field) {
  if (option.has_value()) field = *option;
  option.reset();
}

job::Model TakeLeNet(NamedModelOptions& options) {
  LeNetOptions lenet;
  Take(options.classes, lenet.classes);
  return LeNet(lenet);
}

job::Model TakeMlp(NamedModelOptions& options) {
  MlpOptions mlp;
  Take(options.classes, mlp.classes);
  Take(options.dropout, mlp.dropout);
  Take(options.l2, mlp.l2);
  return Mlp(mlp);
}

job::Model TakeResNetCifar(NamedModelOptions& options) {
  ResNetCifarOptions resnet;
  Take(options.blocks_per_stage, resnet.blocks_per_stage);
  Take(options.image_size, resnet.image_size);
  Take(options.classes, resnet.classes);
  Take(options.l2, resnet.l2);
  return ResNetCifar(resnet);
}

job::Model TakeSoftmaxRegression(NamedModelOptions& options) {
  SoftmaxRegressionOptions softmax;
  Take(options.classes, softmax.classes);
  Take(options.l2, softmax.l2);
  return SoftmaxRegression(softmax);
}

absl::Status AtLeastOne(absl::string_view option,
                        const std::optional<int64_t>& value) {
  if (value.value_or(1) >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", *value, "; it must be at least 1"));
}

template <typename T>
absl::Status NotSet(absl::string_view model, absl::string_view option,
                    const std::optional<T>& value) {
  if (!value.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(model, " has no option ", option));
}

}  // namespace

absl::StatusOr<job::Model> NamedModel(absl::string_view name,
                                      NamedModelOptions options) {
  RETURN_IF_ERROR(AtLeastOne("blocks_per_stage", options.blocks_per_stage));
  RETURN_IF_ERROR(AtLeastOne("image_size", options.image_size));
  RETURN_IF_ERROR(AtLeastOne("classes", options.classes));
  job::Model model;
  if (name == "lenet") {
    model = TakeLeNet(options);
  } else if (name == "mlp") {
    model = TakeMlp(options);
  } else if (name == "resnet_cifar") {
    model = TakeResNetCifar(options);
  } else if (name == "softmax_regression") {
    model = TakeSoftmaxRegression(options);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("no model \"", name,
                     "\"; there are lenet, mlp, resnet_cifar and "
                     "softmax_regression"));
  }
  RETURN_IF_ERROR(NotSet(name, "blocks_per_stage", options.blocks_per_stage));
  RETURN_IF_ERROR(NotSet(name, "image_size", options.image_size));
  RETURN_IF_ERROR(NotSet(name, "classes", options.classes));
  RETURN_IF_ERROR(NotSet(name, "dropout", options.dropout));
  RETURN_IF_ERROR(NotSet(name, "l2", options.l2));
  return model;
}

}  // namespace parasol::zoo
