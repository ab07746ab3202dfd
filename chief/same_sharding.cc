#include "chief/same_sharding.h"

#include "google/protobuf/util/message_differencer.h"

namespace parasol {

using ::google::protobuf::util::MessageDifferencer;

bool HasSameSharding(const durable::CheckpointManifest& checkpoint,
                     const job::Job& job, size_t num_ps) {
  // The part of the strategy that only the worker goes by may change.
  job::ParameterServerStrategy was = checkpoint.job().parameter_server();
  job::ParameterServerStrategy is = job.parameter_server();
  for (job::ParameterServerStrategy* strategy : {&was, &is}) {
    strategy->clear_wire_encoding();
    strategy->clear_push_share();
    if (!strategy->has_synchronous()) strategy->clear_consistency();
  }
  job::Model tables_were, tables_are;
  *tables_were.mutable_sparse_table() = checkpoint.job().model().sparse_table();
  *tables_are.mutable_sparse_table() = job.model().sparse_table();
  return checkpoint.file_size() == static_cast<int>(num_ps) &&
         MessageDifferencer::Equals(was, is) &&
         MessageDifferencer::Equals(tables_were, tables_are);
}

}  // namespace parasol
