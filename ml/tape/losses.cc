#include "ml/tape/losses.h"

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ml/tape/operations.h"

namespace parasol {
namespace {

constexpr float kEpsilon = 1e-7f;

// Labels and outputs of one shape, float32.
struct Compared {
  Tensor labels;
  Tensor outputs;
};

bool HasOneMore(const TensorShape& longer, const TensorShape& shorter) {
  return longer.rank() == shorter.rank() + 1 && longer[shorter.rank()] == 1;
}

Tensor LossFault(absl::string_view loss, absl::string_view what) {
  return Tensor::Error(
      absl::InvalidArgumentError(absl::StrCat(loss, ": ", what)));
}

// Returns the mean over the innermost axis of a term of labels and outputs.
template <typename Term>
Tensor MeanOf(absl::string_view loss, const Tensor& labels,
              const Tensor& outputs, const Term& term) {
  if (!labels.status().ok()) return labels;
  if (!outputs.status().ok()) return outputs;
  Tensor y = Cast(labels, DType::kFloat32);
  Tensor z = outputs;
  if (HasOneMore(z.shape(), y.shape())) y = Reshape(y, z.shape());
  if (HasOneMore(y.shape(), z.shape())) z = Reshape(z, y.shape());
  if (y.shape() != z.shape() || z.rank() == 0) {
    return LossFault(
        loss,
        absl::StrCat("labels of shape ", labels.shape().ToString(),
                     " for outputs of shape ", outputs.shape().ToString()));
  }
  return term(y, z);
}

Tensor Clipped(const Tensor& p) {
  return ClipByValue(p, kEpsilon, 1 - kEpsilon);
}

// Returns the logarithms of the probabilities of classes.
Tensor LogProbabilities(const Tensor& outputs, bool from_logits) {
  if (from_logits) return LogSoftmax(outputs);
  return Log(Clipped(outputs / ReduceSum(outputs, -1, {.keep_dims = true})));
}

Tensor Categorical(const Tensor& y, const Tensor& z,
                   const CrossentropyOptions& options) {
  const float s = options.label_smoothing;
  const float classes = static_cast<float>(z.shape()[z.rank() - 1]);
  const Tensor smoothed = s == 0 ? y : y * (1 - s) + s / classes;
  return -ReduceSum(smoothed * LogProbabilities(z, options.from_logits), -1);
}

// Returns the first label that is not the number of a class.
std::optional<double> WrongLabel(const Tensor& labels, int64_t classes) {
  const bool is_float = labels.dtype() == DType::kFloat32;
  for (int64_t i = 0; i < labels.size(); ++i) {
    const double label =
        is_float ? labels.values()[i] : static_cast<double>(labels.ints()[i]);
    const bool is_class =
        label >= 0 && label < static_cast<double>(classes) &&
        label == static_cast<double>(static_cast<int64_t>(label));
    if (!is_class) return label;
  }
  return std::nullopt;
}

}  // namespace

Tensor BinaryCrossentropy(const Tensor& labels, const Tensor& outputs,
                          const CrossentropyOptions& options) {
  return MeanOf("binary_crossentropy", labels, outputs,
                [&](const Tensor& given, const Tensor& z) {
                  const float s = options.label_smoothing;
                  const Tensor y = s == 0 ? given : given * (1 - s) + s / 2;
                  if (options.from_logits)
                    return ReduceMean(Softplus(z) - z * y, -1);
                  const Tensor p = Clipped(z);
                  const Tensor of_one = y * Log(p + kEpsilon);
                  return -ReduceMean(of_one + (1 - y) * Log(1 - p + kEpsilon),
                                     -1);
                });
}

Tensor CategoricalCrossentropy(const Tensor& labels, const Tensor& outputs,
                               const CrossentropyOptions& options) {
  return MeanOf("categorical_crossentropy", labels, outputs,
                [&](const Tensor& y, const Tensor& z) {
                  return Categorical(y, z, options);
                });
}

Tensor SparseCategoricalCrossentropy(const Tensor& labels,
                                     const Tensor& outputs,
                                     const CrossentropyOptions& options) {
  constexpr absl::string_view kLoss = "sparse_categorical_crossentropy";
  if (!labels.status().ok()) return labels;
  if (!outputs.status().ok()) return outputs;
  if (outputs.rank() == 0) return LossFault(kLoss, "the outputs are a scalar");
  const int64_t classes = outputs.shape()[outputs.rank() - 1];
  const TensorShape rows(
      outputs.shape().sizes().values().subspan(0, outputs.rank() - 1));
  if (labels.shape() != rows && !HasOneMore(labels.shape(), rows)) {
    return LossFault(
        kLoss,
        absl::StrCat("labels of shape ", labels.shape().ToString(),
                     " for outputs of shape ", outputs.shape().ToString()));
  }
  if (const std::optional<double> wrong = WrongLabel(labels, classes)) {
    return LossFault(kLoss, absl::StrCat("label ", *wrong, " is not one of ",
                                         classes, " classes"));
  }
  const Tensor ids = Reshape(Cast(labels, DType::kInt64), rows);
  return Categorical(OneHot(ids, classes), outputs, options);
}

Tensor MeanSquaredError(const Tensor& labels, const Tensor& outputs) {
  return MeanOf("mean_squared_error", labels, outputs,
                [](const Tensor& y, const Tensor& z) {
                  return ReduceMean(Square(z - y), -1);
                });
}

Tensor MeanAbsoluteError(const Tensor& labels, const Tensor& outputs) {
  return MeanOf("mean_absolute_error", labels, outputs,
                [](const Tensor& y, const Tensor& z) {
                  return ReduceMean(Abs(z - y), -1);
                });
}

Tensor Huber(const Tensor& labels, const Tensor& outputs, float delta) {
  return MeanOf("huber", labels, outputs,
                [delta](const Tensor& y, const Tensor& z) {
                  const Tensor e = Abs(z - y);
                  return ReduceMean(Where(LessEqual(e, delta), .5f * Square(e),
                                          delta * (e - .5f * delta)),
                                    -1);
                });
}

Tensor Hinge(const Tensor& labels, const Tensor& outputs) {
  return MeanOf("hinge", labels, outputs, [](const Tensor& y, const Tensor& z) {
    return ReduceMean(Maximum(1 - (2 * y - 1) * z, 0), -1);
  });
}

Tensor Poisson(const Tensor& labels, const Tensor& outputs) {
  return MeanOf("poisson", labels, outputs,
                [](const Tensor& y, const Tensor& z) {
                  return ReduceMean(z - y * Log(z + kEpsilon), -1);
                });
}

}  // namespace parasol
