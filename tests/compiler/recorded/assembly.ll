; ModuleID = 'tests/compiler/programs/assembly.cu'
source_filename = "tests/compiler/programs/assembly.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr noundef %out) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !7
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256
  %2 = load i32, ptr %arrayidx3, align 4, !tbaa !7
  %mul = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %3 = tail call { i32, i32 } asm "mul.lo.u32 $0, $2, $3;\0A\09mul.hi.u32 $1, $2, $3;", "=&r,=&r,r,r"(i32 %1, i32 %2) #2, !srcloc !8
  %asmresult = extractvalue { i32, i32 } %3, 0
  %asmresult5 = extractvalue { i32, i32 } %3, 1
  store i32 %asmresult, ptr %add.ptr, align 4, !tbaa !7
  %arrayidx7 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store i32 %asmresult5, ptr %arrayidx7, align 4, !tbaa !7
  %conv = zext i32 %1 to i64
  %4 = tail call i64 asm "mad.wide.u32 $0, $1, $2, $0;", "=l,r,n,0"(i32 %2, i32 12, i64 %conv) #2, !srcloc !9
  %conv8 = trunc i64 %4 to i32
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store i32 %conv8, ptr %arrayidx9, align 4, !tbaa !7
  %shr = lshr i64 %4, 32
  %conv10 = trunc nuw i64 %shr to i32
  %arrayidx11 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %conv10, ptr %arrayidx11, align 4, !tbaa !7
  %conv12 = trunc i32 %1 to i16
  %5 = tail call i16 asm "{ .reg .b16 t; add.u16 t, $1, $1; mov.b16 $0, t; }", "=h,h"(i16 %conv12) #2, !srcloc !10
  %conv13 = zext i16 %5 to i32
  %arrayidx14 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %conv13, ptr %arrayidx14, align 4, !tbaa !7
  %conv15 = uitofp i32 %1 to float
  %conv17 = uitofp i32 %2 to float
  br label %for.body

for.cond31.preheader:                             ; preds = %for.body
  %arrayidx40 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store float %asmresult26, ptr %arrayidx40, align 4, !tbaa !7
  %arrayidx40.1 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store float %asmresult27, ptr %arrayidx40.1, align 4, !tbaa !7
  %arrayidx40.2 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 28
  store float %asmresult28, ptr %arrayidx40.2, align 4, !tbaa !7
  %arrayidx40.3 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  store float %asmresult29, ptr %arrayidx40.3, align 4, !tbaa !7
  %arrayidx45 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store float %conv15, ptr %arrayidx45, align 4, !tbaa !7
  %conv46 = uitofp i32 %1 to double
  %mul47 = fmul nnan double %conv46, 5.000000e-01
  %conv48 = uitofp i32 %2 to double
  %mul49 = fmul nnan double %conv48, 2.500000e-01
  %6 = tail call double asm "add.f64 $0, $0, $1;", "=d,d,0"(double %mul49, double %mul47) #2, !srcloc !11
  %conv50 = fptoui double %6 to i32
  %arrayidx51 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  store i32 %conv50, ptr %arrayidx51, align 4, !tbaa !7
  %and = and i32 %1, 31
  %7 = tail call i32 asm sideeffect "{\0A.reg .pred more;\0Aagain:\0Aadd.u32 $0, $0, 1;\0Asetp.lt.u32 more, $0, $1;\0A@more bra again;\0A}", "=r,r,0,~{memory}"(i32 %and, i32 0) #3, !srcloc !12
  %arrayidx52 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44
  store i32 %7, ptr %arrayidx52, align 4, !tbaa !7
  %8 = tail call i32 asm "xor.b32 $0, $0, $1;", "=r,r,0"(i32 %2, i32 %1) #2, !srcloc !13
  %arrayidx53 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48
  store i32 %8, ptr %arrayidx53, align 4, !tbaa !7
  %arrayidx54 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 52
  store i32 %1, ptr %arrayidx54, align 4, !tbaa !7
  %add55 = add i32 %8, %1
  %arrayidx56 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 56
  store i32 %add55, ptr %arrayidx56, align 4, !tbaa !7
  %add.ptr57 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 60
  %add58 = add i32 %2, 1
  tail call void asm sideeffect "st.global.u32 [$0], $1;", "l,r,~{memory}"(ptr nonnull %add.ptr57, i32 %add58) #3, !srcloc !14
  ret void

for.body:                                         ; preds = %entry, %for.body
  %mul1668103 = phi float [ %conv15, %entry ], [ %asmresult26, %for.body ]
  %mul1869102 = phi float [ %conv17, %entry ], [ %asmresult27, %for.body ]
  %9 = phi float [ 2.000000e+00, %entry ], [ %asmresult28, %for.body ]
  %10 = phi float [ 3.000000e+00, %entry ], [ %asmresult29, %for.body ]
  %i.0101 = phi i32 [ 0, %entry ], [ %inc, %for.body ]
  %11 = tail call { float, float, float, float } asm sideeffect "add.f32 $0, $0, $4; add.f32 $1, $1, $0; mul.f32 $2, $2, $0; sub.f32 $3, $3, $2;", "=f,=f,=f,=f,f,0,1,2,3"(float 1.500000e+00, float %mul1668103, float %mul1869102, float %9, float %10) #3, !srcloc !15
  %asmresult26 = extractvalue { float, float, float, float } %11, 0
  %asmresult27 = extractvalue { float, float, float, float } %11, 1
  %asmresult28 = extractvalue { float, float, float, float } %11, 2
  %asmresult29 = extractvalue { float, float, float, float } %11, 3
  %inc = add nuw nsw i32 %i.0101, 1
  %exitcond.not = icmp eq i32 %inc, 3
  br i1 %exitcond.not, label %for.cond31.preheader, label %for.body, !llvm.loop !16
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { convergent mustprogress noinline norecurse nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { convergent nounwind memory(none) }
attributes #3 = { convergent nounwind }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.errno.tbaa = !{!2}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!1 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!2 = !{!3, !4, i64 0}
!3 = !{!"__libc_errno", !4, i64 0}
!4 = !{!"int", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C++ TBAA"}
!7 = !{!4, !4, i64 0}
!8 = !{i64 355, i64 380}
!9 = !{i64 523}
!10 = !{i64 678}
!11 = !{i64 1286}
!12 = !{i64 1403, i64 1407, i64 1425, i64 1433, i64 1453, i64 1480, i64 1498}
!13 = !{i64 1663}
!14 = !{i64 1773}
!15 = !{i64 984}
!16 = distinct !{!16, !17, !18}
!17 = !{!"llvm.loop.mustprogress"}
!18 = !{!"llvm.loop.unroll.disable"}
