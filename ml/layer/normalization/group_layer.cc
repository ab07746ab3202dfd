#include "ml/layer/normalization/group_layer.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

class GroupPass final : public LayerPass {
 public:
  struct Form {
    GroupedChannels channels;
    GroupForm form;
    bool has_factor = true;
    bool has_term = true;
  };

  GroupPass(Device& device, const Form& form, Array<float> moments)
      : device_(device), form_(form), moments_(std::move(moments)) {}

  absl::Status RunForward(const Forward& pass) override {
    return NormalizeGroups(
        device_, form_.channels, form_.form, pass.x[0], Factor(pass.variables),
        form_.has_term ? pass.variables.back() : nullptr, Moments(), pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (pass.gradients.empty()) return absl::OkStatus();
    return NormalizeGroupsVariableGradients(
        device_, form_.channels, pass.x[0], Moments(), pass.dy,
        form_.has_factor ? pass.gradients[0] : nullptr,
        form_.has_term ? pass.gradients.back() : nullptr);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return NormalizeGroupsInputGradient(device_, form_.channels, form_.form,
                                        pass.x[0], Factor(pass.variables),
                                        Moments(), pass.dy, pass.dx[0]);
  }

 private:
  const float* Factor(absl::Span<const float* const> variables) const {
    return form_.has_factor ? variables[0] : nullptr;
  }
  RowMoments Moments() const {
    return {moments_.data(), moments_.data() + form_.channels.rows()};
  }

  Device& device_;
  const Form form_;
  const Array<float> moments_;  // [2, rows]
};

class GroupLayer final : public Layer {
 public:
  GroupLayer(const GroupLayerForm& form, Shape shape) : form_(form) {
    output_shape_ = std::move(shape);
    if (!form.factor.empty()) {
      AddVariable(form.factor).mutable_constant()->set_value(1);
    }
    if (!form.term.empty()) AddVariable(form.term).mutable_zeros();
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    GroupPass::Form form = {.channels = form_.channels,
                            .form = form_.form,
                            .has_factor = !form_.factor.empty(),
                            .has_term = !form_.term.empty()};
    form.channels.examples = examples * form_.channels.examples;
    ASSIGN_OR_RETURN(Array<float> moments,
                     device.NewArray<float>(2 * form.channels.rows()));
    return std::make_unique<GroupPass>(device, form, std::move(moments));
  }

 private:
  job::Initializer& AddVariable(const std::string& name) {
    variables_.push_back({.name = name, .shape = {output_shape_.back()}});
    variable_l2_.push_back(0);
    return variables_.back().initializer;
  }

  const GroupLayerForm form_;
};

}  // namespace

std::unique_ptr<const Layer> NewGroupLayer(const GroupLayerForm& form,
                                           Shape shape) {
  return std::make_unique<GroupLayer>(form, std::move(shape));
}

}  // namespace parasol
