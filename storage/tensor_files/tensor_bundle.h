#ifndef PARASOL_STORAGE_TENSOR_FILES_TENSOR_BUNDLE_H_
#define PARASOL_STORAGE_TENSOR_FILES_TENSOR_BUNDLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/tensorflow_checkpoint.pb.h"
#include "storage/tensor_files/tensor.h"
#include "storage/tensor_files/tensor_reader.h"
#include "storage/tensor_files/tensor_writer.h"

// TensorFlow's checkpoint (TensorBundle, V2): "<prefix>.data-0000i-of-0000n"
// with the tensors' bytes, and "<prefix>.index", a table (sorted_table.h) with
// an entry for each tensor or slice.
namespace parasol {

// The key of the string tensor that has the graph of saved objects.
inline constexpr absl::string_view kObjectGraphKey =
    "_CHECKPOINTABLE_OBJECT_GRAPH";
// The end of every other key of a checkpoint with such a graph.
inline constexpr absl::string_view kVariableValueSuffix =
    "/.ATTRIBUTES/VARIABLE_VALUE";

// TensorFlow's numbers for the types of elements.
inline constexpr int kTensorFlowString = 7;
inline constexpr std::pair<ElementType, int> kTensorFlowTypes[] = {
    {ElementType::kFloat32, 1},   {ElementType::kFloat64, 2},
    {ElementType::kInt32, 3},     {ElementType::kInt64, 9},
    {ElementType::kBfloat16, 14}, {ElementType::kFloat16, 19},
    {ElementType::kUint64, 23}};

// Creates a writer of a checkpoint with one data file. A tensor in several
// parts has an entry for each as a slice. Tensors are known by their keys.
// `graph` is written as the object graph unless it has no nodes. Also writes
// the file "checkpoint" beside, so that the directory's newest checkpoint is
// this one.
//   InvalidArgument  two tensors have one key.
//   any other        as for storage/durable_file.h.
absl::StatusOr<std::unique_ptr<TensorWriter>> NewTensorBundleWriter(
    const std::string& prefix, std::vector<TensorPart> parts,
    const tensor_bundle::TrackableObjectGraph& graph = {});

// Opens a checkpoint by its prefix. A tensor has the full name that the object
// graph gives it ("hidden/kernel", "Adam/hidden/kernel/m"), where that is its
// alone, or else its key without kVariableValueSuffix.
//   NotFound         there is no "<prefix>.index", or a data file is missing.
//   DataLoss         the index is damaged, or says what can't be.
//   InvalidArgument  a variable is cut along another axis than its first one.
//   Unavailable      the file system refuses.
absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensorBundle(
    const std::string& prefix);

// Returns the prefix of the newest checkpoint that the file "checkpoint" in
// `directory` names.
//   NotFound  there is no such file.
//   DataLoss  it names none.
absl::StatusOr<std::string> NewestTensorBundle(const std::string& directory);

// Returns "<prefix>.data-00000-of-00002".
std::string DataFileName(absl::string_view prefix, int shard, int shards);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_TENSOR_BUNDLE_H_
