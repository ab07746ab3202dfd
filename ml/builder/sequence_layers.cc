#include "ml/builder/sequence_layers.h"

#include <utility>

#include "ml/builder/layer_fields.h"

namespace parasol::layers {
namespace {

// Copies the fields that Lstm and Gru have in common.
template <typename Message>
void FillRecurrent(const RecurrentOptions& options, Message& message) {
  message.set_units(options.units);
  if (options.return_sequences) message.set_return_sequences(true);
  if (options.go_backwards) message.set_go_backwards(true);
  if (options.bidirectional != job::Bidirectional::ONE_DIRECTION) {
    message.set_bidirectional(options.bidirectional);
  }
  FillProduct(options, message);
  if (IsSet(options.recurrent_initializer)) {
    *message.mutable_recurrent_initializer() = options.recurrent_initializer;
  }
  if (options.recurrent_l2 != 0) message.set_recurrent_l2(options.recurrent_l2);
}

}  // namespace

Value Conv1D(const Value& x, const Conv1DOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::Conv1D& conv = *layer.mutable_conv1d();
  conv.set_filters(options.filters);
  conv.set_kernel_size(options.kernel_size);
  if (options.stride != 1) conv.set_stride(options.stride);
  if (options.padding != job::PADDING_UNSPECIFIED) {
    conv.set_padding(options.padding);
  }
  if (options.dilation_rate != 1) conv.set_dilation_rate(options.dilation_rate);
  FillAffine(options, conv);
  return AddTo(x, std::move(layer));
}

Value Lstm(absl::Span<const Value> inputs, const RecurrentOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  FillRecurrent(options, *layer.mutable_lstm());
  return AddTo(inputs, std::move(layer));
}

Value Gru(absl::Span<const Value> inputs, const RecurrentOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  FillRecurrent(options, *layer.mutable_gru());
  return AddTo(inputs, std::move(layer));
}

Value MultiHeadAttention(absl::Span<const Value> inputs,
                         const MultiHeadAttentionOptions& options) {
  job::Layer layer = NamedLayer(options.name);
  job::MultiHeadAttention& attention = *layer.mutable_multi_head_attention();
  attention.set_num_heads(options.num_heads);
  attention.set_key_dim(options.key_dim);
  if (options.value_dim != 0) attention.set_value_dim(options.value_dim);
  if (options.output_dim != 0) attention.set_output_dim(options.output_dim);
  if (options.causal) attention.set_causal(true);
  if (options.masked) attention.set_masked(true);
  if (options.dropout != 0) attention.set_dropout(options.dropout);
  FillProduct(options, attention);
  return AddTo(inputs, std::move(layer));
}

Value PositionalEmbedding(const Value& x,
                          const PositionalEmbeddingOptions& options) {
  const PositionalEmbeddingOptions defaults;
  job::Layer layer = NamedLayer(options.name);
  job::PositionalEmbedding& embedding = *layer.mutable_positional_embedding();
  if (options.sinusoidal) embedding.set_sinusoidal(true);
  if (options.max_wavelength != defaults.max_wavelength) {
    embedding.set_max_wavelength(options.max_wavelength);
  }
  if (IsSet(options.initializer)) {
    *embedding.mutable_initializer() = options.initializer;
  }
  return AddTo(x, std::move(layer));
}

Value GlobalAveragePool1D(absl::Span<const Value> inputs,
                          const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_global_average_pool1d();
  return AddTo(inputs, std::move(layer));
}

Value GlobalMaxPool1D(absl::Span<const Value> inputs, const Named& options) {
  job::Layer layer = NamedLayer(options.name);
  layer.mutable_global_max_pool1d();
  return AddTo(inputs, std::move(layer));
}

}  // namespace parasol::layers
