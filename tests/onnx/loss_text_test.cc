// --loss as it is typed: what is accepted, and what is said of the rest.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "graph/onnx/loss_text.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/write_bytes.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LossSpec read(const std::string& text) { return read_loss_text(text, {"out", "aux loss"}); }
std::string refusal(const std::string& text) {
  return message([&] { read(text); });
}

TEST(LossText, Accepted) {
  EXPECT_EQ(read("aux loss").output, "aux loss");
  EXPECT_EQ(read(" 'out' ").output, "out");
  const LossSpec entropy =
      read("softmax_cross_entropy(out, y, axis=1, ignore_index=-1, label_smoothing=0.1, class_weights=1,2.5,0, reduction=sum)");
  EXPECT_EQ(entropy.kind, LossSpec::Kind::softmax_cross_entropy);
  EXPECT_EQ(entropy.labels, "y");
  EXPECT_EQ(entropy.axis, 1);
  EXPECT_EQ(entropy.ignore_index, -1);
  EXPECT_EQ(entropy.label_smoothing, 0.1);
  EXPECT_THAT(entropy.class_weights, ElementsAre(1, 2.5, 0));
  EXPECT_TRUE(entropy.sum);
  EXPECT_EQ(read("mse(\"out\")").labels, "target");
  EXPECT_EQ(read("nll('out')").labels, "labels");
  EXPECT_THAT(read("nll(out, class_weights=[3, 4])").class_weights, ElementsAre(3, 4));
  EXPECT_THAT(read("bce_with_logits(out, pos_weight=2)").pos_weight, ElementsAre(2));
  EXPECT_EQ(read("smooth_l1(out, beta=0.25)").beta, 0.25);
  EXPECT_EQ(read("huber(out, delta=2)").beta, 2);
}

TEST(LossText, WeightsComeFromAFileToo) {
  TemporaryFolder folder;
  const std::string path = folder.file("w.npy");
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const float weights[] = {0.5f, 4};
  const auto length = static_cast<uint16_t>(header.size());
  file.write("\x93NUMPY\x01\x00", 8).write(reinterpret_cast<const char*>(&length), 2) << header;
  file.write(reinterpret_cast<const char*>(weights), sizeof weights);
  file.close();
  EXPECT_THAT(read("nll(out, class_weights=" + path + ")").class_weights, ElementsAre(0.5, 4));
  EXPECT_THAT(refusal("nll(out, class_weights=none.npy)"), HasSubstr("none.npy"));
}

TEST(LossText, RefusalsSayWhatToWrite) {
  for (const auto& [typed, said] : std::initializer_list<std::pair<const char*, const char*>>{
           {"mse(out, target", "the closing ')' is missing"},
           {"mse(out, target) * 2", "follows the closing ')'"},
           {"mse out target", "write it as 'mse(OUTPUT, target)'"},
           {"mse[out, target]", "with round brackets"},
           {"mse", "write it as 'mse(OUTPUT, target)'"},
           {"mse(out,, target)", "empty argument"},
           {"mse(, target)", "empty argument"},
           {"mse('out, target)", "is not closed"},
           {"mse(out, target')", "quote"},
           {"nll(out, class_weights=[1,2)", "is not closed"},
           {"mse(out, a, b)", "one argument too many"},
           {"mse(out, reduction=sum, target)", "one argument too many"},
           {"mse(out, axis=1)", "mse has no argument 'axis'; it takes an output, a target and reduction="},
           {"nll(out, ignore_idx=1)", "did you mean ignore_index?"},
           {"softmax_crossentropy(out)", "did you mean softmax_cross_entropy?"},
           {"softmax_crossentropy", "did you mean 'softmax_cross_entropy(OUTPUT, labels)'?"},
           {"hinge(out)", "use softmax_cross_entropy, nll, bce_with_logits, mse, l1, smooth_l1, huber, cosine"},
           {"mse(out, reduction=none)", "use mean or sum"},
           {"nll(out, axis=one)", "axis=one is not a whole number"},
           {"smooth_l1(out, beta=-1)", "must be 0 or more"},
           {"softmax_cross_entropy(out, label_smoothing=2)", "from 0 to 1"}})
    EXPECT_THAT(refusal(typed), HasSubstr(said)) << typed;
}

}  // namespace
}  // namespace zeroplan
