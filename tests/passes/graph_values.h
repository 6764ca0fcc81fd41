#pragma once
// What a graph computes on contents that depend only on the names of its inputs and parameters.
#include <map>
#include <string>

#include "graph/ir/graph.h"

namespace zeroplan {

using Contents = std::map<ValueId, HostTensor>;

// Inputs, parameters and state of the graph, random by name: floating point in [-1, 1), integers in [0, 3).
Contents random_contents(const Graph& graph);
// Everything that a program computes; what writes state is left out. Of two ranks with the same samples: all_reduce doubles.
Contents evaluate(const Graph& graph, Program program, Contents contents);
double loss_sum(const Graph& graph, const Contents& contents);

// By name: named outputs, recorded ones too, loss sum and weight; of eval_step too where the graph has one.
std::map<std::string, HostTensor> results(const Graph& graph);
// By parameter name. Runs autodiff first where the graph has no gradients yet.
std::map<std::string, HostTensor> gradients(Graph graph);
// The same from central differences of the loss.
std::map<std::string, HostTensor> numeric_gradients(const Graph& graph);

}  // namespace zeroplan
