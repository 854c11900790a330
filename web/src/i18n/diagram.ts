/** The texts of diagrams, loaded with them. */
import { translated } from '../state/preferences';

const en = {
  diagram: 'Diagram',
  drawing: 'Drawing the diagram …',
  failed: 'This diagram cannot be drawn. Flowcharts and sequence, state, class and entity diagrams are supported.',
  showSource: 'Show the source',
  showDiagram: 'Show the diagram',
};

const zh: typeof en = {
  diagram: '图表',
  drawing: '正在绘制图表 …',
  failed: '无法绘制此图表。支持流程图、时序图、状态图、类图和实体关系图。',
  showSource: '显示源代码',
  showDiagram: '显示图表',
};

export const useDiagramMessages = translated({ en, zh });
