#pragma once
// What GPT-2 and LLaMA models are made of.
#include <string>

#include "tools/architectures/model_writer.h"

namespace zeroplan {

// [T, T] additive mask: 0 on and below the diagonal, -inf above. Built from shapes in the graph, so that it is no weight.
std::string causal_mask(ModelWriter& m, int64_t context);
// [batch, T, heads·D] → [batch, heads, T, D], and back.
std::string split_heads(ModelWriter& m, const std::string& x, int64_t context, int64_t heads, int64_t head_width);
std::string merge_heads(ModelWriter& m, const std::string& x, int64_t context, int64_t width);
// softmax(q kᵀ / √D + mask) v on [batch, heads, T, D].
std::string attend(ModelWriter& m, const std::string& q, const std::string& k, const std::string& v, const std::string& mask,
                   int64_t head_width);
// Mean cross entropy of [batch, T, vocabulary] logits against input "target", as output "loss".
void token_loss(ModelWriter& m, const std::string& logits, int64_t vocabulary);

}  // namespace zeroplan
