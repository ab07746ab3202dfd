#include "tool/exchange/pytorch_sequences.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

using Values = std::vector<float>;
using Shape = std::vector<int64_t>;

constexpr int64_t kLstmGates = 4;
constexpr int64_t kGruGates = 3;
// PyTorch's gates r, z, n as the job's z, r, h.
constexpr int64_t kGruOrder[] = {1, 0, 2};

// A variable that is made of some of the file's tensors.
struct Made {
  TensorInfo info = {};
  std::vector<size_t> sources = {};
  std::function<Values(absl::Span<const Values>)> make = {};
};

// The rows [first, first + count) of a matrix with `columns`, transposed: what
// a product from the left is from the right.
Values TransposedRows(const Values& matrix, int64_t columns, int64_t first,
                      int64_t count) {
  Values transposed(columns * count);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      transposed[column * count + row] =
          matrix[(first + row) * columns + column];
    }
  }
  return transposed;
}

// Puts the gates, each of as many rows, in the job's order.
Values Ordered(const Values& gates, int64_t count) {
  if (count != kGruGates) return gates;
  const auto each = static_cast<std::ptrdiff_t>(gates.size()) / count;
  Values ordered;
  for (const int64_t gate : kGruOrder) {
    ordered.insert(ordered.end(), gates.begin() + gate * each,
                   gates.begin() + (gate + 1) * each);
  }
  return ordered;
}

class ComposedTensors : public TensorReader {
 public:
  explicit ComposedTensors(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)) {
    for (size_t i = 0; i < reader_->tensors().size(); ++i) {
      by_name_.emplace(reader_->tensors()[i].name, i);
    }
  }

  absl::Status Compose(const CheckpointContents& contents) {
    for (const durable::CheckpointVariable& variable : contents.variables) {
      variables_.emplace(variable.name(), Shape(variable.shape().begin(),
                                                variable.shape().end()));
    }
    for (const auto& [name, shape] : variables_) {
      absl::string_view layer = name;
      if (absl::ConsumeSuffix(&layer, "/recurrent_kernel")) {
        RETURN_IF_ERROR(ComposeRecurrent(std::string(layer), shape));
      } else if (absl::ConsumeSuffix(&layer, "/query/kernel")) {
        RETURN_IF_ERROR(ComposeAttention(std::string(layer)));
      }
    }
    for (size_t i = 0; i < reader_->tensors().size(); ++i) {
      if (composed_.contains(i)) continue;
      tensors_.push_back(reader_->tensors()[i]);
      source_.push_back(i);
    }
    for (const Made& made : made_) tensors_.push_back(made.info);
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    if (tensor < source_.size()) {
      return reader_->Read(source_[tensor], first, out);
    }
    if (read_ != tensor) {
      const Made& made = made_[tensor - source_.size()];
      std::vector<Values> sources;
      for (const size_t source : made.sources) {
        ASSIGN_OR_RETURN(sources.emplace_back(), ReadWhole(source));
      }
      read_.reset();
      values_ = made.make(sources);
      RETURN_IF_ERROR(CheckSize(made.info));
      read_ = tensor;
    }
    std::memcpy(out.data(),
                reinterpret_cast<const char*>(values_.data()) + first,
                out.size());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Values> ReadWhole(size_t tensor) {
    const TensorInfo& info = reader_->tensors()[tensor];
    ASSIGN_OR_RETURN(const uint64_t elements, CountElements(info.shape));
    std::vector<char> bytes(elements * BytesOf(info.type));
    RETURN_IF_ERROR(reader_->Read(tensor, 0, absl::MakeSpan(bytes)));
    Values values(elements);
    ToFloat32(info.type, bytes, absl::MakeSpan(values));
    return values;
  }

  // Checks that `values_` are all elements of the variable.
  absl::Status CheckSize(const TensorInfo& variable) const {
    ASSIGN_OR_RETURN(const uint64_t elements, CountElements(variable.shape));
    if (values_.size() == elements) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        variable.name, " ", ShapeText(variable.shape), " has ", elements,
        " elements, and PyTorch's layer has ", values_.size(),
        " for it: give the job's layer the same widths"));
  }

  bool Has(const std::string& name) const { return by_name_.contains(name); }

  // Adds the variable, if the job has it, of tensors that must have these
  // shapes.
  //   InvalidArgument  one has another shape, or elements of another kind.
  absl::Status Add(const std::string& variable,
                   const std::vector<std::pair<std::string, Shape>>& sources,
                   std::function<Values(absl::Span<const Values>)> make) {
    const auto found = variables_.find(variable);
    if (found == variables_.end()) return absl::OkStatus();
    Made made = {.info = {.name = variable,
                          .type = ElementType::kFloat32,
                          .shape = found->second},
                 .make = std::move(make)};
    for (const auto& [name, shape] : sources) {
      const auto source = by_name_.find(name);
      if (source == by_name_.end()) return absl::OkStatus();
      const TensorInfo& info = reader_->tensors()[source->second];
      if (info.shape != shape || info.type == ElementType::kOther) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, " is ", NameOf(info.type), " ", ShapeText(info.shape),
            ", and for ", variable, " ", ShapeText(found->second),
            " it must be ", ShapeText(shape)));
      }
      made.sources.push_back(source->second);
    }
    composed_.insert(made.sources.begin(), made.sources.end());
    made_.push_back(std::move(made));
    return absl::OkStatus();
  }

  // Composes a layer, or a direction of one, by the shape of its recurrent
  // kernel.
  absl::Status ComposeRecurrent(const std::string& layer,
                                const Shape& recurrent) {
    absl::string_view whole = layer;
    absl::string_view end;
    if (absl::ConsumeSuffix(&whole, "/backward")) end = "_reverse";
    absl::ConsumeSuffix(&whole, "/forward");
    const auto there = [&](absl::string_view what) {
      return absl::StrCat(absl::StrReplaceAll(whole, {{"/", "."}}), ".", what,
                          "_l0", end);
    };
    const auto kernel = variables_.find(absl::StrCat(layer, "/kernel"));
    if (Has(absl::StrCat(layer, "/recurrent_kernel")) ||
        !Has(there("weight_ih")) || kernel == variables_.end() ||
        kernel->second.size() != 2 || recurrent.size() != 2) {
      return absl::OkStatus();
    }
    const int64_t units = recurrent[0];
    const int64_t rows = recurrent[1];
    const int64_t gates = rows / std::max<int64_t>(units, 1);
    const int64_t inputs = kernel->second[0];
    const auto product = [gates, rows](int64_t columns) {
      return [=](absl::Span<const Values> sources) {
        return TransposedRows(Ordered(sources[0], gates), columns, 0, rows);
      };
    };
    RETURN_IF_ERROR(Add(kernel->first, {{there("weight_ih"), {rows, inputs}}},
                        product(inputs)));
    RETURN_IF_ERROR(Add(absl::StrCat(layer, "/recurrent_kernel"),
                        {{there("weight_hh"), {rows, units}}}, product(units)));
    return Add(absl::StrCat(layer, "/bias"),
               {{there("bias_ih"), {rows}}, {there("bias_hh"), {rows}}},
               [gates](absl::Span<const Values> sources) {
                 Values bias = Ordered(sources[0], gates);
                 const Values other = Ordered(sources[1], gates);
                 if (gates == kLstmGates) {
                   for (size_t i = 0; i < bias.size(); ++i) bias[i] += other[i];
                 } else {
                   bias.insert(bias.end(), other.begin(), other.end());
                 }
                 return bias;
               });
  }

  absl::Status ComposeAttention(const std::string& layer) {
    const std::string there = absl::StrReplaceAll(layer, {{"/", "."}});
    const Shape& query = variables_.at(absl::StrCat(layer, "/query/kernel"));
    const auto output =
        variables_.find(absl::StrCat(layer, "/attention_output/kernel"));
    if (Has(absl::StrCat(layer, "/query/kernel")) ||
        !Has(absl::StrCat(there, ".in_proj_weight")) || query.size() != 3 ||
        output == variables_.end() || output->second.size() != 3) {
      return absl::OkStatus();
    }
    const int64_t width = query[0];
    const int64_t rows = query[1] * query[2];
    int64_t first = 0;
    for (const char* const part : {"query", "key", "value"}) {
      RETURN_IF_ERROR(
          Add(absl::StrCat(layer, "/", part, "/kernel"),
              {{absl::StrCat(there, ".in_proj_weight"), {3 * rows, width}}},
              [=](absl::Span<const Values> sources) {
                return TransposedRows(sources[0], width, first, rows);
              }));
      RETURN_IF_ERROR(Add(absl::StrCat(layer, "/", part, "/bias"),
                          {{absl::StrCat(there, ".in_proj_bias"), {3 * rows}}},
                          [=](absl::Span<const Values> sources) {
                            return Values(sources[0].begin() + first,
                                          sources[0].begin() + first + rows);
                          }));
      first += rows;
    }
    const int64_t outputs = output->second[2];
    RETURN_IF_ERROR(
        Add(output->first,
            {{absl::StrCat(there, ".out_proj.weight"), {outputs, rows}}},
            [=](absl::Span<const Values> sources) {
              return TransposedRows(sources[0], rows, 0, outputs);
            }));
    return Add(absl::StrCat(layer, "/attention_output/bias"),
               {{absl::StrCat(there, ".out_proj.bias"), {outputs}}},
               [](absl::Span<const Values> sources) { return sources[0]; });
  }

  const std::unique_ptr<TensorReader> reader_;
  std::map<std::string, size_t> by_name_;
  std::map<std::string, Shape> variables_;  // of the job
  std::set<size_t> composed_;               // tensors of which some are made
  std::vector<Made> made_;
  std::vector<TensorInfo> tensors_;  // what stays, then made_
  std::vector<size_t> source_;       // of what stays
  std::optional<size_t> read_;       // the tensor in values_
  Values values_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> TranslatePyTorchSequences(
    std::unique_ptr<TensorReader> reader, const CheckpointContents& contents) {
  auto composed = std::make_unique<ComposedTensors>(std::move(reader));
  RETURN_IF_ERROR(composed->Compose(contents));
  return composed;
}

}  // namespace parasol
