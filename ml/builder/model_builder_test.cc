#include "ml/builder/model_builder.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/builder/columns.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/sequence_layers.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

void ExpectModel(const ModelBuilder& builder, const std::string& text) {
  job::Model want;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &want));
  EXPECT_EQ(builder.Build().DebugString(), want.DebugString());
}

TEST(ModelBuilderTest, ASequentialModelIsWrittenWithoutNamesAndInputs) {
  ModelBuilder model;
  Value x = model.DenseInput("input", {28, 28});
  x = layers::Flatten(x);
  x = layers::Dense(x, {.units = 512, .activation = job::RELU});
  layers::Dense(x, {.units = 10, .name = "logits"});
  model.SetLoss(SparseCategoricalCrossentropy());
  ExpectModel(model, R"pb(
    input_shape: [ 28, 28 ]
    layer { flatten {} }
    layer { dense { units: 512 activation: RELU } }
    layer {
      name: "logits"
      dense { units: 10 }
    }
    loss { sparse_categorical_crossentropy {} }
  )pb");
}

TEST(ModelBuilderTest, AGraphNamesWhatIsReadFromFurtherAway) {
  ModelBuilder model;
  const Value x = model.DenseInput("image", {8, 8, 4});
  const Value y = layers::BatchNormalization(x);
  const Value z = layers::Conv2D(y, {.filters = 4, .kernel_size = {3}});
  layers::Add({z, y});
  ExpectModel(model, R"pb(
    input {
      name: "image"
      dense { shape: [ 8, 8, 4 ] }
    }
    layer {
      name: "batch_normalization_0"
      batch_normalization {}
    }
    layer {
      name: "conv2d_1"
      conv2d { filters: 4 kernel_size: 3 }
    }
    layer {
      input: [ "conv2d_1", "batch_normalization_0" ]
      add {}
    }
  )pb");
}

TEST(ModelBuilderTest, ColumnsOfIdsAreOfTheJobFile) {
  ModelBuilder model;
  model.IdInput("ids", {Hashed("city", 100), Crossed({"a", "b"}),
                        OfVocabulary("sex", {"f", "m"}),
                        Bucketized("age", {18, 65}), IdentityOf("day", 7)});
  ExpectModel(model, R"pb(
    input {
      name: "ids"
      ids {
        column {
          name: "city"
          hash { buckets: 100 }
        }
        column {
          name: [ "a", "b" ]
          hash {}
        }
        column {
          name: "sex"
          vocabulary { value: [ "f", "m" ] }
        }
        column {
          name: "age"
          boundaries { boundary: [ 18, 65 ] }
        }
        column {
          name: "day"
          identity { num_ids: 7 }
        }
      }
    }
  )pb");
}

TEST(ModelBuilderTest, TablesAndColumnsOfNumbersAreOfTheJobFile) {
  ModelBuilder model;
  const Value ids = model.IdInput("ids", {IdentityOf("day", 7)});
  const Value numbers = model.DenseInput(
      "numbers", {},
      {Numeric("hours"), Numeric("gain", {.log1p = true, .mean = 3})});
  const std::string table =
      model.SparseTable("wide", 1, {.initializer = Zeros()});
  const Value wide =
      layers::EmbeddingBag(ids, {.table = table, .use_bias = true, .l2 = .5});
  const Value deep = layers::Dense(numbers, {.units = 1, .kernel_l2 = .25});
  layers::Add({wide, deep});
  model.SetLoss(BinaryCrossentropy(.1));
  ExpectModel(model, R"pb(
    input {
      name: "ids"
      ids {
        column {
          name: "day"
          identity { num_ids: 7 }
        }
      }
    }
    input {
      name: "numbers"
      dense {
        column { name: "hours" }
        column { name: "gain" log1p: true mean: 3 }
      }
    }
    sparse_table {
      name: "wide"
      width: 1
      initializer { zeros {} }
    }
    layer {
      name: "embedding_bag_0"
      input: "ids"
      embedding_bag { table: "wide" use_bias: true l2: .5 }
    }
    layer {
      name: "dense_1"
      input: "numbers"
      dense { units: 1 kernel_l2: .25 }
    }
    layer {
      input: [ "embedding_bag_0", "dense_1" ]
      add {}
    }
    loss { binary_crossentropy { label_smoothing: .1 } }
  )pb");
}

TEST(ModelBuilderTest, EveryLayerOfImagesCanBeWritten) {
  ModelBuilder model;
  Value x = model.DenseInput("input", {8, 8, 2});
  x = layers::Pad(x, {.before = {1, 1, 0}, .after = {1, 1, 0}});
  x = layers::Conv2D(x, {.filters = 4,
                         .kernel_size = {3, 3},
                         .stride = {2},
                         .padding = job::SAME,
                         .use_bias = false,
                         .activation = job::TANH,
                         .kernel_initializer = HeNormal(),
                         .kernel_l2 = .1});
  x = layers::BatchNormalization(x, {.momentum = .9, .scale = false});
  x = layers::LayerNormalization(x, {.epsilon = .1, .center = false});
  x = layers::MaxPool(x, {.pool_size = {2}});
  x = layers::AveragePool(
      x, {.pool_size = {1}, .stride = {2}, .padding = job::SAME});
  layers::GlobalAveragePool(x);
  ExpectModel(model, R"pb(
    input_shape: [ 8, 8, 2 ]
    layer {
      pad {
        before: [ 1, 1, 0 ]
        after: [ 1, 1, 0 ]
      }
    }
    layer {
      conv2d {
        filters: 4
        kernel_size: [ 3, 3 ]
        stride: 2
        padding: SAME
        use_bias: false
        activation: TANH
        kernel_initializer { he_normal {} }
        kernel_l2: .1
      }
    }
    layer { batch_normalization { momentum: .9 scale: false } }
    layer { layer_normalization { epsilon: .1 center: false } }
    layer { max_pool { pool_size: 2 } }
    layer { average_pool { pool_size: 1 stride: 2 padding: SAME } }
    layer { global_average_pool {} }
  )pb");
}

TEST(ModelBuilderTest, EveryLayerOfListsCanBeWritten) {
  ModelBuilder model;
  Value x = model.DenseInput("input", {8});
  x = layers::Dropout(x, .5);
  x = layers::Activation(x, job::GELU);
  x = layers::Concatenate({x, x});
  x = layers::Concatenate({x, x}, /*axis=*/0);
  x = layers::Custom(
      {x},
      {.type = "maxout", .output_shape = {4}, .parameters = {{"pieces", "2"}}});
  layers::FactorizationMachine(x);
  ExpectModel(model, R"pb(
    input_shape: [ 8 ]
    layer { dropout { rate: .5 } }
    layer { name: "activation_1" activation: GELU }
    layer {
      name: "concatenate_2"
      input: [ "activation_1", "activation_1" ]
      concatenate {}
    }
    layer {
      input: [ "concatenate_2", "concatenate_2" ]
      concatenate { axis: 0 }
    }
    layer {
      custom {
        type: "maxout"
        output_shape: 4
        parameter { name: "pieces" value: "2" }
      }
    }
    layer { factorization_machine {} }
  )pb");
}

TEST(ModelBuilderTest, EveryLayerOfConvolutionsAndGroupsCanBeWritten) {
  ModelBuilder model;
  Value x = model.DenseInput("input", {8, 8, 2});
  x = layers::DepthwiseConv2D(x, {.kernel_size = {3},
                                  .depth_multiplier = 2,
                                  .dilation_rate = {1, 2},
                                  .use_bias = false});
  x = layers::SeparableConv2D(
      x, {.filters = 4, .kernel_size = {3}, .padding = job::SAME});
  x = layers::Conv2DTranspose(
      x, {.filters = 3, .kernel_size = {2}, .stride = {2}});
  x = layers::GroupNormalization(x, {.groups = 3, .center = false});
  layers::RmsNormalization(x, {.epsilon = .1});
  ExpectModel(model, R"pb(
    input_shape: [ 8, 8, 2 ]
    layer {
      depthwise_conv2d {
        kernel_size: 3
        depth_multiplier: 2
        dilation_rate: [ 1, 2 ]
        use_bias: false
      }
    }
    layer { separable_conv2d { filters: 4 kernel_size: 3 padding: SAME } }
    layer { conv2d_transpose { filters: 3 kernel_size: 2 stride: 2 } }
    layer { group_normalization { groups: 3 center: false } }
    layer { rms_normalization { epsilon: .1 } }
  )pb");
}

TEST(ModelBuilderTest, EveryLayerOfSequencesCanBeWritten) {
  ModelBuilder model;
  Value x = model.DenseInput("input", {8, 2});
  x = layers::Conv1D(x, {.filters = 4,
                         .kernel_size = 3,
                         .padding = job::CAUSAL,
                         .dilation_rate = 2,
                         .name = "conv"});
  x = layers::PositionalEmbedding(x, {.sinusoidal = true});
  x = layers::MultiHeadAttention(
      {x}, {.num_heads = 2, .key_dim = 3, .causal = true, .dropout = .1});
  x = layers::Lstm({x}, {.units = 4,
                         .return_sequences = true,
                         .bidirectional = job::Bidirectional::SUM});
  x = layers::Gru({x}, {.units = 5,
                        .return_sequences = true,
                        .go_backwards = true,
                        .recurrent_initializer = GlorotUniform(),
                        .recurrent_l2 = .1});
  layers::GlobalMaxPool1D({x});
  ExpectModel(model, R"pb(
    input_shape: [ 8, 2 ]
    layer {
      name: "conv"
      conv1d { filters: 4 kernel_size: 3 padding: CAUSAL dilation_rate: 2 }
    }
    layer { positional_embedding { sinusoidal: true } }
    layer {
      multi_head_attention { num_heads: 2 key_dim: 3 causal: true dropout: .1 }
    }
    layer { lstm { units: 4 return_sequences: true bidirectional: SUM } }
    layer {
      gru {
        units: 5
        return_sequences: true
        go_backwards: true
        recurrent_initializer { glorot_uniform {} }
        recurrent_l2: .1
      }
    }
    layer { global_max_pool1d {} }
  )pb");
}

TEST(ModelBuilderTest, AValueOfAnotherModelIsABug) {
  ModelBuilder one;
  ModelBuilder other;
  const Value x = one.DenseInput("x", {1});
  EXPECT_DEATH(other.AddLayer(job::Layer(), {x}),
               "reads x, which another ModelBuilder made");
}

}  // namespace
}  // namespace parasol
