#ifndef PARASOL_ML_INPUT_EXAMPLE_ORDER_H_
#define PARASOL_ML_INPUT_EXAMPLE_ORDER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace parasol {

// The examples of one shard and the size of the buffer that shuffles them.
struct InputShardOrder {
  int64_t total = 0;  // number of examples in the set
  // The reader's share: the examples `shard`, `shard + num_shards`, …
  int64_t shard = 0;
  int64_t num_shards = 1;
  // Number of examples in the buffer from which examples are drawn. It is
  // refilled in file order, like tf.data's shuffle(). Up to 1 keeps file order;
  // the number of the shard's examples makes every order equally likely.
  int64_t shuffle_buffer = 0;
  uint64_t seed = 0;
};

// Numbers of examples in the order in which a reader takes them. Each epoch has
// each example of the shard once. Epoch n depends on (order, n) only, so it is
// the same on every machine and does not need epoch n - 1.
class ExampleOrder {
 public:
  explicit ExampleOrder(const InputShardOrder& order) : order_(order) {}

  void StartEpoch(int64_t epoch);

  // Returns the next example of the epoch, or nullopt at its end. StartEpoch()
  // must have been called before.
  std::optional<int64_t> Next();
  // Passes over the next `examples` examples of the epoch, or all that are
  // left. Costs drawing them if there is a shuffle buffer, otherwise nothing.
  void Skip(int64_t examples);

 private:
  std::optional<int64_t> NextInFile();

  const InputShardOrder order_;
  int64_t next_in_file_ = 0;
  std::vector<int64_t> buffer_;
  std::mt19937_64 random_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_EXAMPLE_ORDER_H_
