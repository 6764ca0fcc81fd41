// Placeholders while the branches are joined: delete a line together with the family that replaces it.
#include "graph/onnx/decode.h"

namespace zeroplan {

void add_activation_decoders(DecoderTable&) {}

void add_arithmetic_decoders(DecoderTable&) {}

void add_arg_decoders(DecoderTable&) {}

void add_bit_decoders(DecoderTable&) {}

void add_conv_decoders(DecoderTable&) {}

void add_einsum_decoders(DecoderTable&) {}

void add_gather_nd_decoders(DecoderTable&) {}

void add_grid_decoders(DecoderTable&) {}

void add_loss_forms_decoders(DecoderTable&) {}

void add_normalize_decoders(DecoderTable&) {}

void add_pad_decoders(DecoderTable&) {}

void add_pool_decoders(DecoderTable&) {}

void add_quantize_decoders(DecoderTable&) {}

void add_random_decoders(DecoderTable&) {}

void add_recurrent_decoders(DecoderTable&) {}

void add_resize_decoders(DecoderTable&) {}

void add_scatter_decoders(DecoderTable&) {}

void add_signal_decoders(DecoderTable&) {}

void add_sort_decoders(DecoderTable&) {}

}  // namespace zeroplan
