#include "serving/tensor_request.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

using tensorflow::TensorProto;

constexpr int kMaxRank = 8;

// One tensor on its way into a column.
class TensorReader {
 public:
  TensorReader(const std::string& name, const TensorProto& tensor,
               RequestColumns& columns)
      : name_(name), tensor_(tensor), columns_(columns) {}

  absl::Status Read(const RequestLimits& limits) {
    ASSIGN_OR_RETURN(column_, columns_.Find(name_));
    RETURN_IF_ERROR(columns_.BeginColumn(column_));
    RETURN_IF_ERROR(ReadShape(limits));
    switch (tensor_.dtype()) {
      case tensorflow::DT_FLOAT:
        return ReadNumbers<float>(tensor_.float_val());
      case tensorflow::DT_DOUBLE:
        return ReadNumbers<double>(tensor_.double_val());
      case tensorflow::DT_INT8:
        return ReadNumbers<int8_t>(tensor_.int_val());
      case tensorflow::DT_UINT8:
        return ReadNumbers<uint8_t>(tensor_.int_val());
      case tensorflow::DT_INT16:
        return ReadNumbers<int16_t>(tensor_.int_val());
      case tensorflow::DT_UINT16:
        return ReadNumbers<uint16_t>(tensor_.int_val());
      case tensorflow::DT_INT32:
        return ReadNumbers<int32_t>(tensor_.int_val());
      case tensorflow::DT_UINT32:
        return ReadNumbers<uint32_t>(tensor_.uint32_val());
      case tensorflow::DT_INT64:
        return ReadNumbers<int64_t>(tensor_.int64_val());
      case tensorflow::DT_UINT64:
        return ReadNumbers<uint64_t>(tensor_.uint64_val());
      case tensorflow::DT_STRING:
        return ReadTexts();
      default:
        return Fault(absl::StrCat("has the type ", tensor_.dtype(),
                                  "; give numbers or texts"));
    }
  }

 private:
  absl::Status Fault(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ShownText(name_), " ", what));
  }

  absl::Status ReadShape(const RequestLimits& limits) {
    const auto& dims = tensor_.tensor_shape().dim();
    if (tensor_.tensor_shape().unknown_rank() || dims.empty() ||
        dims.size() > kMaxRank) {
      return Fault(absl::StrCat("has no shape of 1 to ", kMaxRank,
                                " axes; the first one counts examples"));
    }
    for (const auto& dim : dims) {
      int64_t product = 0;
      if (dim.size() < 0 ||
          __builtin_mul_overflow(elements_, dim.size(), &product) ||
          product > limits.max_values) {
        return Fault(absl::StrCat("has an axis of ", dim.size(),
                                  "; a request has at most ", limits.max_values,
                                  " values"));
      }
      elements_ = product;
    }
    examples_ = dims.begin()->size();
    if (examples_ > limits.max_examples) {
      return Fault(absl::StrCat("has ", examples_, " examples, of at most ",
                                limits.max_examples,
                                " (--max_examples); split the request"));
    }
    for (int i = 1; i < dims.size(); ++i) {
      shape_.push_back(dims.Get(i).size());
    }
    return absl::OkStatus();
  }

  absl::Status WrongCount(int64_t found) const {
    return Fault(
        absl::StrCat("has ", found, " elements, its shape has ", elements_));
  }

  // Reads the elements from tensor_content or from `list`.
  template <typename T, typename List>
  absl::Status ReadNumbers(const List& list) {
    const std::string& content = tensor_.tensor_content();
    if (!content.empty()) {
      if (content.size() != elements_ * sizeof(T)) {
        return WrongCount(static_cast<int64_t>(content.size() / sizeof(T)));
      }
      return ReadExamples([this, &content](int64_t i) {
        T number;
        std::memcpy(&number, content.data() + i * sizeof(T), sizeof(T));
        return Add(number);
      });
    }
    if (elements_ > 0 && (list.empty() || list.size() > elements_)) {
      return WrongCount(list.size());
    }
    return ReadExamples([this, &list](int64_t i) {
      return Add(static_cast<T>(
          list.Get(static_cast<int>(std::min<int64_t>(i, list.size() - 1)))));
    });
  }

  absl::Status ReadTexts() {
    const auto& texts = tensor_.string_val();
    if (elements_ > 0 && (texts.empty() || texts.size() > elements_)) {
      return WrongCount(texts.size());
    }
    return ReadExamples([this, &texts](int64_t i) {
      return columns_.AddBorrowedText(
          column_,
          texts.Get(static_cast<int>(std::min<int64_t>(i, texts.size() - 1))));
    });
  }

  // Calls `add` with each element's index.
  template <typename AddElement>
  absl::Status ReadExamples(AddElement add) {
    if (examples_ == 0) return absl::OkStatus();
    // Before the elements: one of them can stand for millions.
    RETURN_IF_ERROR(columns_.CheckShape(column_, shape_));
    const int64_t each = elements_ / examples_;
    for (int64_t example = 0; example < examples_; ++example) {
      for (int64_t i = 0; i < each; ++i) {
        RETURN_IF_ERROR(add(example * each + i));
      }
      RETURN_IF_ERROR(columns_.EndValue(column_, shape_));
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Add(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof(digits), number);
      return columns_.AddReal(column_, number,
                              absl::string_view(digits, end.ptr - digits));
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return columns_.AddUnsigned(column_, number);
    } else {
      return columns_.AddInteger(column_, number);
    }
  }

  const std::string& name_;
  const TensorProto& tensor_;
  RequestColumns& columns_;
  size_t column_ = 0;
  std::vector<int64_t> shape_;  // of an example
  int64_t elements_ = 1;
  int64_t examples_ = 0;
};

}  // namespace

absl::Status ReadTensors(const tensorflow::serving::PredictRequest& request,
                         const RequestLimits& limits, RequestColumns& columns) {
  for (const auto& [name, tensor] : request.inputs()) {
    if (columns.IsIgnored(name) && !columns.Find(name).ok()) continue;
    RETURN_IF_ERROR(TensorReader(name, tensor, columns).Read(limits));
  }
  return columns.EndColumns();
}

tensorflow::TensorProto TensorOf(absl::Span<const float> values,
                                 int64_t width) {
  TensorProto tensor;
  tensor.set_dtype(tensorflow::DT_FLOAT);
  auto& shape = *tensor.mutable_tensor_shape();
  shape.add_dim()->set_size(static_cast<int64_t>(values.size()) / width);
  shape.add_dim()->set_size(width);
  tensor.mutable_float_val()->Add(values.begin(), values.end());
  return tensor;
}

}  // namespace parasol
