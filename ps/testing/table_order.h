#ifndef PARASOL_PS_TESTING_TABLE_ORDER_H_
#define PARASOL_PS_TESTING_TABLE_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/rows/row_form.h"
#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/testing/parameter_server_fixture.h"

// An order with a sparse table, and what tests of its checkpoints have in
// common.
namespace parasol::parameter_server_testing {

inline constexpr size_t kWidth = 2;

inline std::string IdBytes(const std::vector<uint64_t>& ids) {
  return std::string(reinterpret_cast<const char*>(ids.data()),
                     ids.size() * sizeof(uint64_t));
}

// Variable "w" of three chunks, and table "t", with Adagrad.
inline wire::LoadRequest TableOrder() {
  wire::LoadRequest order = LoadOrder();
  order.mutable_optimizer()->mutable_adagrad()->set_learning_rate(1);
  order.mutable_part(0)->mutable_initializer()->mutable_random_uniform();
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(kWidth);
  table.mutable_initializer()->mutable_random_uniform();
  return order;
}

// Describes the variables and tables of `order` in a manifest.
inline durable::CheckpointManifest ManifestOf(const wire::LoadRequest& order) {
  durable::CheckpointManifest manifest;
  manifest.set_run_id(order.run_id());
  const auto optimizer = *MakeOptimizer(order.optimizer());
  const auto& slots = optimizer->slot_names();
  durable::CheckpointVariable& variable = *manifest.add_variable();
  variable.set_name("w");
  variable.add_shape(order.part(0).variable_shape(0));
  variable.mutable_slot()->Assign(slots.begin(), slots.end());
  for (const wire::TableSpec& spec : order.table()) {
    *manifest.add_table() = RowForm(spec.name(), spec.width(), *optimizer);
  }
  return manifest;
}

}  // namespace parasol::parameter_server_testing

#endif  // PARASOL_PS_TESTING_TABLE_ORDER_H_
