#pragma once
// What --loss says, word by word.
#include <string>
#include <vector>

#include "graph/onnx/loss.h"

namespace zeroplan {

// A name of `outputs` as it stands, or a built-in; LossSpec::output is not checked. Throws Error naming what is accepted.
LossSpec read_loss_text(const std::string& text, const std::vector<std::string>& outputs);

}  // namespace zeroplan
