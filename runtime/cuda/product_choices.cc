#include "runtime/cuda/product_choices.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/error.h"
#include "graph/ops/op_def.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/product_lists.h"
#include "runtime/exec/tensor_address.h"
#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

constexpr int kWords = std::size(cublasLtMatmulAlgo_t{}.data);

// Nothing has been allocated yet. Arenas begin at multiples of more than products ask for: so do these addresses, which nobody reads.
std::byte* address_of(const Plan& plan, const PlanTensor& tensor, int rank) {
  const int64_t arena = (int64_t{static_cast<int>(tensor.arena)} + 1) << 44;
  return reinterpret_cast<std::byte*>(arena + offset_for_rank(plan, tensor, rank));
}

TensorView view_of(const Plan& plan, int32_t tensor, int rank) {
  if (tensor == kNone) return {};
  return view_at(address_of(plan, plan.tensors[tensor], rank), plan.tensors[tensor]);
}

void list_step(const Plan& plan, const Step& step, int rank, CudaContext& context, const ProductTaker& take) {
  std::vector<TensorView> inputs, outputs;
  for (const Operand& o : step.inputs) inputs.push_back(view_of(plan, o.tensor, rank));
  for (const Operand& o : step.outputs) outputs.push_back(view_of(plan, o.tensor, rank));
  KernelArgs args;
  args.inputs = inputs.data();
  args.input_count = static_cast<int>(inputs.size());
  args.outputs = outputs.data();
  args.output_count = static_cast<int>(outputs.size());
  if (step.workspace.tensor != kNone) {
    const PlanTensor& w = plan.tensors[step.workspace.tensor];
    args.workspace = address_of(plan, w, rank);
    args.workspace_bytes = tensor_span_bytes(w);
  }
  args.attributes = &step.attributes;
  args.context = &context;
  list_products(step.op, args, take);
}

// fn(products, problem) for each product of the plan, once; errors are given the place of the first step that makes it.
template <typename Fn>
void each_product(const Plan& plan, int rank, Device& device, const Fn& fn) {
  device.use();
  const std::unique_ptr<Stream> stream = device.new_stream(StreamKind::compute);
  CudaContext context(static_cast<cudaStream_t>(stream->native()));
  std::set<ProductProblem> seen;
  for (const PlanProgram& program : plan.programs)
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (step.kind != StepKind::kernel) continue;
      try {
        list_step(plan, step, rank, context, [&](const ProductProblem& problem) {
          if (seen.insert(problem).second) fn(context.products(), problem);
        });
      } catch (const Error& error) {
        throw error.within({.rank = rank,
                            .plan_op = static_cast<int>(i),
                            .program = std::string(program_name(program.program)),
                            .op = std::string(op_name(step.op)),
                            .node = step.origin});
      }
    }
}

std::string version_text() {
  const size_t version = cublasLtGetVersion();  // 130002: 13.0.2
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

ProductChoices choose_products(const Plan& plan, int rank, Device& device) {
  ProductChoices choices;
  each_product(plan, rank, device, [&](Products& products, const ProductProblem& problem) {
    choices.emplace(product_text(problem), products.choose(problem));
  });
  return choices;
}

void require_products(const Plan& plan, int rank, Device& device, const ProductChoices& choices) {
  each_product(plan, rank, device, [&](Products& products, const ProductProblem& problem) {
    const auto chosen = choices.find(product_text(problem));
    if (chosen == choices.end()) throw Error("rank 0 has chosen no algorithm for the product " + product_text(problem));
    if (const std::string trouble = products.trouble_of(problem, chosen->second); !trouble.empty())
      throw Error(
          fmt::format("this GPU cannot make the product {} by the algorithm that rank 0 has chosen: {}; all ranks must compute the "
                      "same bits. Give them equal GPUs, with the same driver and libraries",
                      chosen->first, trouble));
  });
}

// The version, then a line for each product: the words of its algorithm, whether it adds the bias, the product.
std::string packed(const ProductChoices& choices) {
  std::string text = version_text() + '\n';
  for (const auto& [product, choice] : choices) {
    for (const uint64_t word : choice.algorithm.data) text += fmt::format("{:016x} ", word);
    text += fmt::format("{:d} {}\n", choice.adds_bias, product);
  }
  return text;
}

ProductChoices unpacked_choices(const std::string& text, int rank) {
  std::istringstream lines(text);
  std::string version;
  std::getline(lines, version);
  if (version != version_text())
    throw Error(fmt::format("rank 0 has cuBLASLt {}, this rank {}: what one chooses means nothing to the other. Give all ranks the same "
                            "libraries",
                            version, version_text()),
                {.rank = rank});
  ProductChoices choices;
  for (std::string word; lines >> word;) {
    ProductChoice choice;
    for (int w = 0; w < kWords; ++w) {
      std::from_chars(word.data(), word.data() + word.size(), choice.algorithm.data[w], 16);
      lines >> word;
    }
    choice.adds_bias = word == "1";
    lines.get();
    std::getline(lines, word);
    choices[word] = choice;
  }
  return choices;
}

std::string choices_line(const ProductChoices& choices) {
  if (choices.empty()) return "";
  const std::string bytes = packed(choices);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{} by cuBLASLt {}, algorithms chosen by rank 0: {:016x}{:016x}",
                     counted(static_cast<int64_t>(choices.size()), "matrix product"), version_text(), hash.high64, hash.low64);
}

}  // namespace zeroplan
